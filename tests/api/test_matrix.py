"""Every role on every page and route: exactly what the tables of docs/guide/rights.md say."""

from base64 import b64encode
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import orjson
import pytest
from streamlit.testing.v1 import AppTest

from app.api.openapi import OPERATIONS
from app.api.operation import PREFIX, Operation
from app.gate.rules import AccessRule, rule_for
from app.session.state import Page
from backend.cluster.document import write_cluster
from backend.codec import to_plain
from backend.planning.plan import Plan
from backend.profiles.profile import Profile
from backend.runs.sweeps.sweep import SweepSpec
from tests.api.asking import JSON, ask, method_of
from tests.api.matrix import MACHINES, ROOT, TABLES, WHO, Place, commands
from tests.app.conftest import as_served  # noqa: F401 (a fixture)
from tests.app.seed import NODE
from tests.app.test_resume import PART
from tests.unit.profiles.test_traces import rank
from tests.unit.profiles.traces_by_hand import on_a_gpu

PROGRAM = (ROOT / "tests" / "api" / "two_ranks.txt").read_text()


def bodies(place: Place) -> dict[str, object]:
    """What each operation takes; those that are not here take nothing."""
    stored = place.inside.plans.get(place.found.plan)
    planned = {"profile_id": place.found.profile, "cluster": write_cluster(stored.cluster)}
    plan = planned | {"plan": to_plain(Plan, stored.plan)}
    profile = to_plain(Profile, place.inside.profiles.get(place.found.profile).profile)
    vision = place.inside.access.home
    sweep = to_plain(SweepSpec, place.inside.sweeps.get(place.sweep).sweep.spec)
    return {
        "add_definition": {"zoo": "mlp", "project_id": vision},
        "add_profile": {"definition_id": place.found.definition, "profile": profile},
        "import_profile": {
            "definition_id": place.found.definition,
            "microbatch": 32,
            "filename": "step.json",
            "content": b64encode(on_a_gpu()).decode(),
        },
        "compare_traces": {
            "traces": [
                {"name": str(n), "trace": rank(n, "forward 0", "backward 0").decode()}
                for n in range(2)
            ]
        },
        "propose_plans": planned,
        "compare_plans": planned,
        "predict_plan": plan,
        "examine_program": planned | {"program": PROGRAM},
        "save_plan": plan,
        "label_plan": {"name": "Monday"},
        "label_profile": {"note": "ours"},
        "save_cluster": {"name": "ours", "cluster": "dgx-h100:2", "project_id": vision},
        "label_cluster": {"name": "Monday"},
        "submit_run": {"spec": {"kind": "profile", "definition_id": place.found.definition}},
        "label_run": {"starred": True},
        "start_sweep": {"spec": sweep},
        "add_comment": {"text": "a word"},
        "save_view": {"name": str(uuid4()), "project_id": vision},
        "resume_run": {},
        "import_run": {"run": "0123456789abcdef", "definition_id": place.found.definition},
        "add_project": {"name": "Third"},
        "change_project": {"name": "Borealis"},
        "set_member_role": {"name": "the viewer", "role": "viewer"},
    }


def path_of(operation: Operation, place: Place) -> str:
    run = {
        "cancel_run": place.found.queued,
        "get_artifact": place.found.succeeded,
        "get_timeline": place.found.succeeded,
        "get_metric": place.found.succeeded,
        "delete_run": place.found.failed,
    }
    numbers = {
        "definitions": place.found.definition,
        "profiles": place.found.profile,
        "plans": place.found.plan,
        "clusters": place.cluster() if operation.tags[0] == "clusters" else 0,
        "comments": place.comment() if operation.tags[0] == "comments" else 0,
        "sweeps": place.sweep if operation.tags[0] == "sweeps" else 0,
        "views": place.view() if operation.tags[0] == "views" else 0,
        "projects": place.inside.access.home,
        "checkpoints": place.checkpoint,
        "runs": run.get(operation.name, place.found.failed),
    }
    number = numbers.get(str(operation.tags[0]), 0)
    files = place.inside.runs.artifacts.list(place.found.succeeded)
    name = files[0].name if operation.name == "get_artifact" and files else "loss"
    name = {"get_checkpoint_file": PART, "get_node_use": NODE}.get(operation.name, name)
    path = operation.path.replace("{id:int}", str(number)).replace("{other:int}", str(number))
    return path.replace("{name:path}", name).replace("{name}", name)


def test_every_page_route_and_command_has_one_line() -> None:
    assert set(TABLES["pages"]) == {page.path for page in Page}
    assert set(TABLES["routes"]) == {operation.name for operation in OPERATIONS}
    assert set(TABLES["commands"]) == set(commands()) - MACHINES
    told = (ROOT / "docs" / "guide" / "rights.md").read_text()
    assert all(f"`{name}`" in told for name in MACHINES)


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_routes(place: Place, operation: Operation, who: str) -> None:
    said = TABLES["routes"][operation.name][who]
    path = path_of(operation, place)
    if operation.name == "delete_run" and said == "yes":
        path = f"{PREFIX}/runs/{place.ended()}"
    body = bodies(place).get(operation.name)
    data = None if body is None else orjson.dumps(body)
    headers = place.cookie(who) | (JSON if data is not None else {})
    answer = ask(place.url, path, method_of(operation), data, headers)
    told = (answer.status, answer.body[:300])
    if said in REFUSALS:
        assert answer.status == REFUSALS[said], told
    else:
        assert answer.status < 500, told
        assert answer.status not in REFUSALS.values(), told
        empty = answer.body in (b"[]", b'{"runs":[],"total":0}')
        assert empty or said == "yes", told


REFUSALS = {"sign in": 401, "no": 403, "not found": 404}
Sign = Callable[[str], None]


@pytest.fixture
def signed(place: Place, monkeypatch: pytest.MonkeyPatch) -> Sign:
    def sign(who: str) -> None:
        cookies = {"stageflow": place.secret(who)}
        monkeypatch.setattr(
            "streamlit.runtime.context.ContextProxy.cookies", property(lambda _: cookies)
        )

    return sign


VISITS = [(page, who) for page in Page for who in ("outsider", "viewer")]
VISITS += [(Page.PEOPLE, who) for who in ("editor", "admin", "team")]


@pytest.mark.parametrize(("page", "who"), VISITS)
def test_pages(place: Place, signed: Sign, page: Page, who: str) -> None:
    said = TABLES["pages"][page.path][who]
    signed(who)
    app = AppTest.from_file(ROOT / "app" / "main.py", default_timeout=240).run()
    if said == "no":  # it is not even in the navigation
        with pytest.raises(ValueError, match="Could not find a navigation page"):
            app.switch_page(page.value)
        return
    app.switch_page(page.value)
    if page is Page.RUN:
        app.query_params["id"] = str(place.found.failed)
    app.run()
    assert not app.exception
    kinds: tuple[Any, ...] = (app.title, app.markdown, app.caption, app.error, app.button)
    written = "\n".join(
        str(getattr(each, "label", "") or each.value) for kind in kinds for each in kind
    )
    assert "may not" not in written
    assert said != "nothing" or "broken loss" not in written
    assert said != "nothing" or "Borealis" not in written


@pytest.mark.parametrize("page", Page)
def test_pages_are_for_those_who_have_signed_in(page: Page) -> None:
    """That the gate does what its table says is tested in test_gate_of_pages.py."""
    assert TABLES["pages"][page.path]["nobody"] == "sign in"
    assert rule_for(f"/{page.path}") is AccessRule.PERSON
