"""A run's life as a table: every pair of states, allowed or not."""

from itertools import product

import pytest

from backend.runs.states import IllegalMove, RunState, move

ALLOWED = {
    "queued": {"starting", "failed", "cancelled"},
    "starting": {"queued", "running", "failed", "cancelled"},
    "running": {"queued", "succeeded", "failed", "cancelled"},
}


@pytest.mark.parametrize(("now", "to"), list(product(RunState, RunState)))
def test_every_move_is_allowed_or_raises(now: RunState, to: RunState):
    if to in ALLOWED.get(now, set()):
        assert move(now, to) is to
    else:
        with pytest.raises(IllegalMove, match=f"{now} run cannot become {to}"):
            move(now, to)


def test_a_state_is_final_where_nothing_follows():
    assert {state for state in RunState if state.is_final} == {"succeeded", "failed", "cancelled"}
    assert {state for state in RunState if state.is_live} == {"starting", "running"}
