"""Plans over REST are searched for by other processes: what is said where one of them is killed."""

import json

import pytest

from app.api.operations import plans
from app.api.site import PREFIX
from tests.api.asking import JSON, Answer, ask
from tests.api.conftest import Served
from tests.searched import killed_at_once


def proposed(served: Served, path: str) -> Answer:
    profile = served.backend.plans.get(served.seeded.plan).profile_id
    asked = {"profile_id": profile, "cluster": "local:2", "planner": "straight"}
    return ask(served.url, PREFIX + path, "POST", json.dumps(asked).encode(), JSON)


@pytest.mark.parametrize(
    ("path", "search"), [("/plans/propose", "replies"), ("/plans/compare", "compare")]
)
def test_one_that_is_killed_is_said_and_the_next_request_is_answered(
    served: Served, monkeypatch: pytest.MonkeyPatch, path: str, search: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(plans, search, killed_at_once)
        answer = proposed(served, path)
    assert answer.status == 503, answer.body
    assert answer.json["kind"] == "SearcherEnded"
    assert "SIGKILL" in answer.json["error"]
    assert "Plan again" in answer.json["advice"]
    assert proposed(served, path).status == 200
