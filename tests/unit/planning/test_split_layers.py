"""Which plans may split layers in a run, that their replicas always meet, and sizes of slices."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.errors import InvalidInput
from backend.planning.channels.checks import check_split_layers
from backend.planning.channels.layer_split import LayerSplit, sizes_of
from backend.planning.channels.meeting import meets
from backend.planning.channels.types import LayerType
from backend.planning.plan import Partition, Plan, Stage
from backend.planning.thresholds import Thresholds
from backend.runs.request.combinations import check_combinations
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import TrainSpec

LAYERS = ["table", "inner", "head"]
PARTITION = Partition((Stage(0, 2, (0, 1)), Stage(2, 3, (2,))))
SPLIT = LayerSplit("inner", LayerType.INPUTS, (1, 3))
PLAN = Plan("t", PARTITION, "1f1b-flush", 4, 4, splits=(SPLIT,))
SPEC = TrainSpec(1, PLAN, optimizer=OptimizerSpec("adam", 0.1))


@given(st.integers(1, 500), st.lists(st.integers(1, 9), min_size=1, max_size=5).map(tuple))
def test_slices_are_all_channels_in_the_ratio(count: int, parts: tuple[int, ...]) -> None:
    sizes = sizes_of(count, parts)
    assert sum(sizes) == count
    assert all(
        abs(size - count * part / sum(parts)) <= 1 for size, part in zip(sizes, parts, strict=True)
    )


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"schedule": "pipedream", "batch": 1}, "does not flush"),
        ({"schedule": "zb-h1"}, "does not flush with whole backwards"),
        ({"batch": 3}, "do not share batches of 3 evenly"),
        ({"recompute": True}, "computed again"),
        ({"shard_state": True}, "sharded"),
        ({"num_pipelines": 2}, "pipelines"),
        ({"partition": PARTITION.sharing(((1, 3), ()))}, "unequal shares"),
        ({"splits": (replace(SPLIT, layer="tail"),)}, "'tail'"),
        ({"splits": (SPLIT, SPLIT)}, "name it twice"),
        ({"splits": (replace(SPLIT, layer="head"),)}, "stage 1 has 1 replicas"),
        ({"splits": (replace(SPLIT, parts=(1, 2, 3)),)}, "1:2:3"),
        ({"splits": (SPLIT, replace(SPLIT, layer="table", parts=()))}, "several ratios"),
    ],
)
def test_what_cannot_be_split_is_refused(change: dict, told: str) -> None:
    check_split_layers(PLAN, LAYERS)
    with pytest.raises(InvalidInput, match=told):
        check_split_layers(replace(PLAN, **change), LAYERS)
    check_split_layers(replace(PLAN, splits=()), LAYERS)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"optimizer": OptimizerSpec("adafactor", 0.1)}, "whole matrices"),
        ({"precision": "bfloat16"}, "float32"),
        ({"plan": replace(PLAN, recompute=True)}, "computed again"),
        ({"plan": replace(PLAN, codec_of_sums=Thresholds(0.01))}, "sums of gradients are coded"),
    ],
)
def test_runs_refuse_what_would_not_be_exact(change: dict, told: str) -> None:
    check_combinations(SPEC)
    with pytest.raises(InvalidInput, match=told):
        check_combinations(replace(SPEC, **change))


def replicated(name: str, replicas: list[int], batch: int) -> Plan:
    firsts = [sum(replicas[:n]) for n in range(len(replicas))]
    stages = tuple(
        Stage(n, n + 1, tuple(range(firsts[n], firsts[n] + count)))
        for n, count in enumerate(replicas)
    )
    return Plan("t", Partition(stages), name, 4, batch)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(1, 2))
def test_replicas_meet_where_all_forwards_come_first(replicas: list[int], times: int) -> None:
    assert meets(replicated("gpipe", replicas, 12 * times))


@given(st.lists(st.sampled_from([1, 2, 4]), min_size=1, max_size=4))
def test_replicas_meet_under_1f1b_where_each_stage_has_no_more(replicas: list[int]) -> None:
    assert meets(replicated("1f1b-flush", sorted(replicas, reverse=True), 8))


def test_replicas_that_would_wait_forever_are_refused() -> None:
    """The forward of microbatches 0 to 2 on stage 1 needs that of 2 on stage 0, which under 1F1B
    waits for the backward of 0."""
    plan = replicated("1f1b-flush", [1, 3, 1], 12)
    assert not meets(plan)
    split = replace(plan, splits=(LayerSplit("inner", LayerType.INPUTS),))
    with pytest.raises(InvalidInput, match="1-3-1 would wait for each other forever"):
        check_split_layers(split, LAYERS)
    check_split_layers(replace(split, schedule="gpipe"), LAYERS)
