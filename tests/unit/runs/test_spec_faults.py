"""What is said of a document that is no request for a run."""

import json

import pytest

from backend.codec import from_json, to_plain
from backend.errors import InvalidInput
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.request.spec import ProfileSpec, RunSpec, TrainSpec

PLAN = Plan("even", Partition((Stage(0, 1, (0,)),)), "gpipe", 8)


@pytest.mark.parametrize(
    ("spec", "wrong", "said"),
    [
        (TrainSpec(1, PLAN), {"optimizer": {"name": "adagrad"}}, "TrainSpec.optimizer.name: "),
        (TrainSpec(1, PLAN), {"epochs": "many"}, "TrainSpec.epochs: "),
        (ProfileSpec(1), {"microbatch": "many"}, "ProfileSpec.microbatch: "),
        (ProfileSpec(1), {"kind": "tune"}, "kind: Input should be "),
    ],
)
def test_the_fault_is_named_in_the_kind_that_was_asked_for(spec, wrong, said) -> None:
    document = json.dumps(to_plain(RunSpec, spec) | wrong)
    with pytest.raises(InvalidInput, match=said):
        from_json(RunSpec, document)
