"""Plans as JSON."""

import json

import pytest

from backend.errors import InvalidInput
from backend.planning.document import read_plan, write_plan
from backend.planning.plan import Partition, Plan, Stage

PLAN = Plan(
    "pipedream",
    Partition((Stage(0, 1, (0, 1)), Stage(1, 3, (2,))), order=(0, 2, 1)),
    "1f1b-flush",
    8,
    4,
    recompute=True,
)


def test_a_plan_comes_back_as_it_was():
    text = json.loads(write_plan(PLAN))
    assert (text["format"], text["version"]) == ("stageflow-plan", 1)
    assert read_plan(write_plan(PLAN)) == PLAN


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"version": 2}, "version"),
        ({"format": "other"}, "format"),
        ({"plan": {"planner": "x"}}, "partition"),
    ],
)
def test_what_is_not_a_plan_is_named(change, told):
    text = json.dumps(json.loads(write_plan(PLAN)) | change)
    with pytest.raises(InvalidInput, match=told):
        read_plan(text)


def test_stages_that_leave_a_gap_are_refused():
    text = write_plan(PLAN).decode().replace('"first":1', '"first":2')
    with pytest.raises(InvalidInput, match="next free layer"):
        read_plan(text)
