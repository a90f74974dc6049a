"""An order over REST: proposed in a plan, kept, and refused in words where no run repeats it."""

import json
from typing import Any

import pytest

from app.api.site import PREFIX
from tests.api.asking import JSON, Answer, ask
from tests.api.conftest import Served

ORDER = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"


def post(served: Served, path: str, **fields: Any) -> Answer:
    profile = served.backend.plans.get(served.seeded.plan).profile_id
    asked = {"profile_id": profile, "cluster": "local:2", **fields}
    return ask(served.url, PREFIX + path, "POST", json.dumps(asked).encode(), JSON)


def test_a_plan_of_an_order_is_proposed_and_kept(served: Served) -> None:
    [proposal] = post(served, "/plans/propose", order=ORDER).json
    plan = proposal["prediction"]["plan"]
    assert plan["schedule"] == "custom"
    assert plan["kept_order"] == ["0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1"]
    kept = post(served, "/plans", plan=plan, name="mine").json
    assert served.backend.plans.get(kept["id"]).plan.kept_order == tuple(plan["kept_order"])


@pytest.mark.parametrize(
    ("order", "words"),
    [
        (ORDER.replace("1F1,", ""), "comes before its forward"),
        ("hello", "is not a computation"),
        ("0F0,0B0\n1F0,1B0\n2F0,2B0\n", "3"),
    ],
)
def test_an_order_that_cannot_run_is_refused(served: Served, order: str, words: str) -> None:
    answer = post(served, "/plans/propose", order=order)
    assert (answer.status, words in answer.body.decode()) == (422, True), answer.body


def test_a_stored_order_is_checked_again(served: Served) -> None:
    """REST takes plans from anybody: one whose order was changed on the way is refused."""
    [proposal] = post(served, "/plans/propose", order=ORDER).json
    plan = proposal["prediction"]["plan"] | {"kept_order": ["0F0 0F1 0B0 0B1", "1F0 1B0 1B1 1F1"]}
    answer = post(served, "/plans", plan=plan)
    assert (answer.status, "1B1@0" in answer.body.decode()) == (422, True), answer.body
