"""The orders, typed out as they are drawn in the papers."""

from dataclasses import replace

import pytest

from backend.errors import InvalidInput
from backend.pipeline.actions import Compute, Step
from backend.pipeline.lower import lower
from backend.pipeline.notation import format_action
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape


def computes(name, coordinates):
    actions = lower(schedule(name), coordinates.shape).actions(coordinates.rank)
    return [action for action in actions if isinstance(action, Compute)]


def drawn(name, shape):
    """One string per rank: F0 B0 and | for a step."""
    return [
        " ".join(
            "|" if isinstance(action, Step) else f"{type(action).__name__[0]}{action.microbatch}"
            for action in computes(name, coordinates)
        )
        for coordinates in shape.coordinates
    ]


def test_gpipe():
    assert drawn("gpipe", Shape((1, 1), 6, 3)) == [
        "F0 F1 F2 B0 B1 B2 | F3 F4 F5 B3 B4 B5 |",
        "F0 F1 F2 B0 B1 B2 | F3 F4 F5 B3 B4 B5 |",
    ]


def test_1f1b_flush_is_a_staircase():
    assert drawn("1f1b-flush", Shape((1, 1, 1, 1), 6, 6)) == [
        "F0 F1 F2 F3 B0 F4 B1 F5 B2 B3 B4 B5 |",
        "F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 B4 B5 |",
        "F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 B5 |",
        "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 |",
    ]


def test_1f1b_flush_drains_before_each_step():
    assert drawn("1f1b-flush", Shape((1, 1), 6, 3)) == [
        "F0 F1 B0 F2 B1 B2 | F3 F4 B3 F5 B4 B5 |",
        "F0 B0 F1 B1 F2 B2 | F3 B3 F4 B4 F5 B5 |",
    ]


def test_pipedream_steps_after_every_backward_and_drains_once():
    assert drawn("pipedream", Shape((1, 1, 1), 5)) == [
        "F0 F1 F2 B0 | F3 B1 | F4 B2 | B3 | B4 |",
        "F0 F1 B0 | F2 B1 | F3 B2 | F4 B3 | B4 |",
        "F0 B0 | F1 B1 | F2 B2 | F3 B3 | F4 B4 |",
    ]


def test_replicas_take_microbatches_in_turn():
    """PipeDream's figure 8: two replicas of the first stage feed one second stage."""
    assert drawn("pipedream", Shape((2, 1), 6)) == [
        "F0 F2 B0 | F4 B2 | B4 |",
        "F1 F3 B1 | F5 B3 | B5 |",
        "F0 B0 | F1 B1 | F2 B2 | F3 B3 | F4 B4 | F5 B5 |",
    ]


def test_a_replica_without_a_share_of_a_small_batch_still_steps():
    assert drawn("gpipe", Shape((2,), 2, 1)) == ["F0 B0 | |", "| F1 B1 |"]


def test_forward_only():
    assert drawn("forward-only", Shape((1, 2), 4)) == ["F0 F1 F2 F3", "F0 F2", "F1 F3"]


@pytest.mark.parametrize("ahead", [1, 2, 3, 4, 9])
def test_1f1b_runs_ahead_by_what_it_is_told_but_not_beyond_the_end(ahead):
    told = replace(schedule("gpipe"), warm_up=lambda at: ahead)
    order = [a for a in lower(told, Shape((1,), 4, 4)).ranks[0] if not isinstance(a, Step)]
    first_backward = next(i for i, a in enumerate(order) if type(a).__name__ == "Backward")
    assert first_backward == min(ahead, 4)
    assert len(order) == 8


def test_afp_runs_further_ahead_the_more_positions_follow():
    """AvgPipe, figures: 7, 5, 3, 1 forwards for four pipeline ranks."""
    assert drawn("afp", Shape((1, 1), 5, 5)) == [
        "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4 |",
        "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 |",
    ]
    long = Shape((1,) * 4, 12, 12)
    assert [row.index("B0") // 3 for row in drawn("afp", long)] == [7, 5, 3, 1]


def test_afp_is_1f1b_without_an_advance_and_gpipe_with_a_large_one():
    plain, far = Shape((1,) * 4, 8, 8, advance=0), Shape((1,) * 4, 8, 8, advance=9)
    assert drawn("afp", plain) == drawn("1f1b-flush", plain)
    assert drawn("afp", far)[:-1] == drawn("gpipe", far)[:-1]


def split(name, shape):
    letters = {"Forward": "F", "BackwardInput": "I", "BackwardWeight": "W"}
    return [
        " ".join(
            "|" if isinstance(a, Step) else f"{letters[type(a).__name__]}{a.microbatch}"
            for a in computes(name, coordinates)
        )
        for coordinates in shape.coordinates
    ]


def test_zero_bubble_h1():
    """Per j: F, B_j, and W_(j-s) once j >= s; then the rest of W."""
    assert split("zb-h1", Shape((1, 1, 1), 5, 5)) == [
        "F0 F1 F2 I0 W0 F3 I1 W1 F4 I2 W2 I3 W3 I4 W4 |",
        "F0 F1 I0 F2 I1 W0 F3 I2 W1 F4 I3 W2 I4 W3 W4 |",
        "F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 F4 I4 W2 W3 W4 |",
    ]


def test_zero_bubble_h2():
    """Warm-up 2(p-s)-1; per j: B_j, W_(j-2s) once j >= 2s, F; then the rest of W."""
    assert split("zb-h2", Shape((1, 1), 5, 5)) == [
        "F0 F1 F2 I0 W0 F3 I1 W1 F4 I2 W2 I3 W3 I4 W4 |",
        "F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 F4 I4 W2 W3 W4 |",
    ]


def test_interleaving_goes_round_the_chunks():
    shape = Shape((1, 1), 4, 4, chunks=2)
    orders = [
        " ".join(format_action(a).split("@")[0] for a in computes("interleaved", coordinates))
        for coordinates in shape.coordinates
    ]
    assert orders == [
        "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3 0S 2S",
        "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3 1S 3S",
    ]


def test_interleaving_with_one_chunk_is_1f1b():
    shape = Shape((2, 1), 12, 6)
    assert drawn("interleaved", shape) == drawn("1f1b-flush", shape)


def test_2bw_steps_after_each_batch_and_never_drains():
    assert drawn("2bw", Shape((1, 1), 6, 2)) == [
        "F0 F1 B0 F2 B1 | F3 B2 F4 B3 | F5 B4 B5 |",
        "F0 B0 F1 B1 | F2 B2 F3 B3 | F4 B4 F5 B5 |",
    ]


def test_pipelines_take_batches_in_turn():
    assert drawn("1f1b-flush", Shape((1, 1), 8, 2, num_pipelines=2)) == [
        "F0 F1 B0 B1 | F4 F5 B4 B5 |",
        "F0 B0 F1 B1 | F4 B4 F5 B5 |",
        "F2 F3 B2 B3 | F6 F7 B6 B7 |",
        "F2 B2 F3 B3 | F6 B6 F7 B7 |",
    ]


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("2bw", Shape((1, 1, 1), 4, 2), "every 2 microbatches, but pipeline rank 0 runs 3 ahead"),
        ("2bw", Shape((2, 1), 4, 2), "every 2 microbatches, but pipeline rank 0 runs 4 ahead"),
        ("interleaved", Shape((1, 2), 8, 4, chunks=2), r"not \(1, 2\)"),
        ("interleaved", Shape((1, 1, 1), 8, 4, chunks=2), "3 pipeline ranks x 1 replicas = 3"),
        ("pipedream-naive", Shape((1, 1), 4, num_pipelines=2), "2 pipelines could exchange"),
        ("zb-h1", Shape((1, 1), 4, 2, chunks=2), "one stage per pipeline rank, not 2"),
    ],
)
def test_a_shape_that_a_schedule_cannot_run_is_refused_with_the_numbers(name, shape, message):
    with pytest.raises(InvalidInput, match=message) as caught:
        schedule(name).check(shape)
    assert caught.value.advice
