"""Version numbers on drawn orders: op microbatch @ version."""

from itertools import pairwise

from backend.pipeline.actions import (
    Backward,
    BackwardInput,
    BackwardWeight,
    Forward,
    Recompute,
    Step,
)
from backend.pipeline.lower import lower
from backend.pipeline.notation import format_action
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from tests.oracles.versions import newest, number


def computes(name, shape):
    return [
        " ".join(format_action(a) for a in actions if isinstance(a, Forward | Backward | Step))
        for actions in lower(schedule(name), shape).ranks
    ]


def test_pipedream_stashes_the_version_of_each_forward():
    assert computes("pipedream", Shape((1, 1), 4)) == [
        "0F0@0 0F1@0 0B0@0 0S@1 0F2@1 0B1@0 0S@2 0F3@2 0B2@1 0S@3 0B3@2 0S@4",
        "1F0@0 1B0@0 1S@1 1F1@1 1B1@1 1S@2 1F2@2 1B2@2 1S@3 1F3@3 1B3@3 1S@4",
    ]


def test_the_delay_of_a_straight_pipeline_is_its_depth_behind():
    """w(t+1) = w(t) - lr grad f(w_1(t-n+1), ..., w_n(t)), PipeDream section 3.3."""
    depth = 4
    program = lower(schedule("pipedream"), Shape((1,) * depth, 12))
    for pipeline_rank, actions in enumerate(program.ranks):
        for action in actions:
            if isinstance(action, Backward):
                delay = depth - 1 - pipeline_rank
                assert action.version == max(action.microbatch - delay, 0)


def test_a_flush_leaves_one_version_per_batch():
    assert computes("gpipe", Shape((1,), 4, 2)) == [
        "0F0@0 0F1@0 0B0@0 0B1@0 0S@1 0F2@1 0F3@1 0B2@1 0B3@1 0S@2"
    ]


def test_both_halves_of_a_split_backward_read_the_forwards_version():
    order = (Step(0), Forward(0, 0), Step(0), BackwardInput(0, 0), BackwardWeight(0, 0))
    (numbered,) = newest(Shape((1,), 1), (order,))
    assert numbered == (
        Step(0, 1), Forward(0, 0, 1), Step(0, 2), BackwardInput(0, 0, 1), BackwardWeight(0, 0, 1),
    )  # fmt: skip


def test_chunks_count_their_steps_apart():
    (numbered,) = newest(Shape((1,), 1), ((Step(0), Forward(1, 0), Forward(0, 0)),))
    assert numbered == (Step(0, 1), Forward(1, 0, 0), Forward(0, 0, 1))


def test_a_policy_may_let_a_forward_read_an_older_version():
    """The seam for double buffering and vertical sync: only the reading rule differs."""
    order = (Step(0), Step(0), Forward(0, 0), Backward(0, 0))
    assert list(number(order, lambda forward, made: made - 1))[2:] == [
        Forward(0, 0, 1), Backward(0, 0, 1),
    ]  # fmt: skip


def test_vertical_sync_reads_on_every_stage_what_the_input_stage_chose():
    """w(t+1) = w(t) - lr grad f(w(t-n+1)) for all stages alike (PipeDream, section 3.3)."""
    depth = 3
    program = lower(schedule("pipedream-vertical-sync"), Shape((1,) * depth, 9))
    for actions in program.ranks:
        for action in actions:
            if isinstance(action, Forward | Backward):
                assert action.version == max(action.microbatch - depth + 1, 0)


def test_vertical_sync_over_replicas_reads_no_more_than_the_input_stage_has_learned_from():
    """Ours: a version of stage s stands for r_s times as many microbatches."""
    shape = Shape((2, 1), 12)
    program = lower(schedule("pipedream-vertical-sync"), shape)
    read = {
        (a.stage, a.microbatch): a.version
        for actions in program.ranks
        for a in actions
        if isinstance(a, Forward)
    }
    assert [read[0, m] for m in range(12)] == [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert all(read[1, m] == 2 * read[0, m] for m in range(12))


def test_double_buffering_reads_the_version_before_the_newest():
    """PipeDream-2BW, section 3.1: max(floor((k-1)/m) - 1, 0), k from 1."""
    program = lower(schedule("2bw"), Shape((1, 1, 1), 16, 4))
    for actions in program.ranks:
        for a in actions:
            if isinstance(a, Forward | Backward):
                assert a.version == max(a.microbatch // 4 - 1, 0)


def test_naive_backwards_read_what_is_newest_by_then():
    assert computes("pipedream-naive", Shape((1, 1), 3)) == [
        "0F0@0 0F1@0 0B0@0 0S@1 0F2@1 0B1@1 0S@2 0B2@2 0S@3",
        "1F0@0 1B0@0 1S@1 1F1@1 1B1@1 1S@2 1F2@2 1B2@2 1S@3",
    ]


def test_recomputation_reads_what_its_backward_reads():
    program = lower(schedule("pipedream"), Shape((1, 1), 4, recompute=True))
    for actions in program.ranks:
        for again, back in pairwise(actions):
            if isinstance(again, Recompute) and isinstance(back, Backward):
                assert (again.microbatch, again.version) == (back.microbatch, back.version)
