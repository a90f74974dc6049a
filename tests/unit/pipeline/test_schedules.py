"""The orders, typed out as they are drawn in the papers."""

import pytest

from backend.pipeline.actions import Step
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.schedules.rhythm import Rhythm, play
from backend.pipeline.shape import Shape


def drawn(name, shape):
    """One string per rank: F0 B0 and | for a step."""
    return [
        " ".join(
            "|" if isinstance(action, Step) else f"{type(action).__name__[0]}{action.microbatch}"
            for action in schedule(name).order(seat, shape)
        )
        for seat in shape.seats
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
    order = list(play(0, range(4), Rhythm(ahead)))
    first_backward = next(i for i, a in enumerate(order) if type(a).__name__ == "Backward")
    assert first_backward == min(ahead, 4)
    assert len(order) == 8
