"""What an attempt does next, as tables; and what holds for every sequence of events."""

from collections import deque
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.runs.events import Chosen, Finished, Metrics, RankError, Started
from backend.runs.run import RunError
from backend.runs.states import RunState
from workers.supervisor.state.ending import (
    CANCELLED,
    CUT_OFF,
    HELD_UP,
    NOTHING_BEGUN,
    PATIENCE,
    STOPPED,
    SUCCEEDED,
    Ending,
    warned,
)
from workers.supervisor.state.events import (
    AttemptEvent,
    Interrupted,
    Launched,
    Observed,
    RanksEnded,
    Written,
)
from workers.supervisor.state.instructions import Do, Instruction, PassOn, Write
from workers.supervisor.state.rank_states import SETTLE, SILENCE, RankStates
from workers.supervisor.state.step import (
    FLUSH,
    LEGAL,
    AttemptState,
    GracefulStop,
    IllegalEvent,
    Phase,
    step,
)

FAULT = Ending(RunState.FAILED, RunError("AgentFault", "a pipe broke"))
LIMIT = RunError("OutOfMemory", "the ranks hold 9 GiB")
STARTED = ((0, Started(0)), (1, Started(1)))
FINISHED = ((0, Finished(0, 3)), (1, Finished(1, 3)))
LOSS = ((1, Metrics("loss", (1,), (2.0,), (0.0,))),)
BOOM = (1, RankError(1, "ModelRaised", "boom"))
LAUNCHED = Launched(RankStates(2, 0.0))
AT_WORK = (LAUNCHED, Observed(0.1, STARTED + LOSS))
WARNED = (*AT_WORK, Observed(1.0, seconds_left=60.0))


def after(*events: AttemptEvent) -> tuple[AttemptState, list[Instruction]]:
    """The state after these events, and what the last one leads to."""
    state, todo = AttemptState(), [Do.LAUNCH]
    for event in events:
        state, todo = step(state, event)
    return state, todo


def ended(ending: Ending, *events: AttemptEvent) -> None:
    """The last event ends the ranks; with their last words that is the attempt's end."""
    state, todo = after(*events)
    assert (state.phase, todo) == (Phase.ENDING, [Do.END_RANKS])
    state, todo = step(state, RanksEnded(9.0))
    assert (state.phase, state.ending, todo) == (Phase.OVER, ending, [])


WATCHED: list[tuple[str, tuple[AttemptEvent, ...], list[Instruction]]] = [
    ("the ranks are watched once they are started", (LAUNCHED,), [Do.WATCH]),
    ("nothing is written too often", (LAUNCHED, Observed(FLUSH - 0.1)), [Do.WATCH]),
    ("what was heard is written", (LAUNCHED, Observed(FLUSH)), [Write(False)]),
    ("a run of ranks at work is running", (*AT_WORK, Observed(FLUSH)), [Write(True)]),
    ("it is watched again", (LAUNCHED, Observed(1.0), Written(1.1)), [Do.WATCH]),
    (
        "a database that is away ends nothing",
        (LAUNCHED, Observed(1.0), Written(9.0, answered=False)),
        [Do.WATCH],
    ),
    (
        "what rank 0 chose is passed on first",
        (LAUNCHED, Observed(FLUSH, ((0, Chosen(0, 1, 8)),))),
        [PassOn(Chosen(0, 1, 8)), Write(False)],
    ),
    (
        "stacks that were asked for are shown",
        (LAUNCHED, Observed(1.0), Written(1.1, stacks_asked=True)),
        [Do.SHOW_STACKS, Do.WATCH],
    ),
    (
        "a cancel asks for a last checkpoint",
        (*AT_WORK, Observed(1.0), Written(1.0, cancel_requested=True)),
        [Do.REQUEST_CHECKPOINT, Do.WATCH],
    ),
    (
        "so does the agent's own end, however long its writes take",
        (*AT_WORK, Observed(9.0, must_stop=True)),
        [Do.REQUEST_CHECKPOINT, Do.WATCH],
    ),
    (
        "while it is waited for, each look is followed by a write",
        (*AT_WORK, Observed(1.0, must_stop=True), Observed(1.1)),
        [Write(True)],
    ),
    (
        "and it is asked for once",
        (*AT_WORK, Observed(1.0, must_stop=True), Observed(1.1), Written(1.1, True, True)),
        [Do.WATCH],
    ),
    ("so does a warning", WARNED, [Do.REQUEST_CHECKPOINT, Do.WATCH]),
    (
        "half of its seconds are for that",
        (*WARNED, Observed(1.1, seconds_left=59.9), Written(30.9, num_checkpoints=0)),
        [Do.WATCH],
    ),
    (
        "a stop in between waits less long, and asks for no second one",
        (*WARNED, Observed(1.1, seconds_left=59.9, must_stop=True)),
        [Do.WATCH],
    ),
]


@pytest.mark.parametrize(
    ("events", "todo"), [case[1:] for case in WATCHED], ids=[c[0] for c in WATCHED]
)
def test_while_it_goes_on(events: tuple[AttemptEvent, ...], todo: list[Instruction]):
    assert after(*events)[1] == todo


ENDS: list[tuple[str, Ending, tuple[AttemptEvent, ...]]] = [
    ("cancelled before the ranks were started", CANCELLED, (Interrupted(CANCELLED),)),
    ("a fault before that", FAULT, (Interrupted(FAULT),)),
    ("a fault while they are watched", FAULT, (LAUNCHED, Interrupted(FAULT))),
    ("a fault of a write", FAULT, (LAUNCHED, Observed(1.0), Interrupted(FAULT))),
    ("done", SUCCEEDED, (LAUNCHED, Observed(1.0, FINISHED, {0: 0, 1: 0}))),
    (
        "done, and exceeds a limit at that moment",
        SUCCEEDED,
        (LAUNCHED, Observed(1.0, FINISHED, {0: 0, 1: 0}, LIMIT)),
    ),
    ("exceeds a limit", Ending(RunState.FAILED, LIMIT), (LAUNCHED, Observed(1.0, limit=LIMIT))),
    ("a write hangs", HELD_UP, (*AT_WORK, Observed(9.0, lease_lapsed=True))),
    (
        "the database is away",
        CUT_OFF,
        (*AT_WORK, Observed(1.0), Written(1.0, answered=False), Observed(9.0, lease_lapsed=True)),
    ),
    (
        "a write hangs after the database was away",
        HELD_UP,
        (
            LAUNCHED,
            Observed(1.0),
            Written(1.0, answered=False),
            Observed(2.0),
            Written(2.0),
            Observed(9.0, lease_lapsed=True),
        ),
    ),
    (
        "cancelled while nothing can be saved",
        CANCELLED,
        (LAUNCHED, Observed(1.0), Written(1.0, True, True)),
    ),
    (
        "stopped while nothing can be saved",
        STOPPED,
        (LAUNCHED, Observed(0.1, STARTED[:1]), Observed(0.2, must_stop=True)),
    ),
    (
        "stopped before a rank has begun its work",
        NOTHING_BEGUN,
        (LAUNCHED, Observed(0.1, ((0, None),), must_stop=True)),
    ),
    (
        "cancelled, with a newer checkpoint",
        CANCELLED,
        (
            *AT_WORK,
            Observed(1.0),
            Written(1.0, True, True, 2),
            Observed(1.1),
            Written(1.1, True, True, 3),
        ),
    ),
    (
        "cancelled, with no checkpoint in time",
        CANCELLED,
        (
            *AT_WORK,
            Observed(1.0),
            Written(1.0, True, True, 2),
            Observed(1.1),
            Written(1.0 + PATIENCE, True, True, 2),
        ),
    ),
    (
        "cancelled, and the database goes away",
        CANCELLED,
        (
            *AT_WORK,
            Observed(1.0),
            Written(1.0, True, True),
            Observed(1.1),
            Written(1.0 + PATIENCE, answered=False),
        ),
    ),
    (
        "the first who asks counts",
        STOPPED,
        (
            *AT_WORK,
            Observed(0.2, must_stop=True),
            Observed(0.3),
            Written(0.2 + PATIENCE, True, True),
        ),
    ),
    (
        "warned, with a newer checkpoint",
        warned(60.0),
        (*WARNED, Observed(1.1, seconds_left=59.9), Written(20.0, num_checkpoints=1)),
    ),
    (
        "warned, with no checkpoint in time",
        warned(60.0),
        (*WARNED, Observed(1.1, seconds_left=59.9), Written(31.0)),
    ),
    (
        "warned while nothing can be saved",
        warned(60.0),
        (LAUNCHED, Observed(0.1, STARTED), Observed(0.2, seconds_left=60.0)),
    ),
    (
        "warned before a rank has begun its work",
        NOTHING_BEGUN,
        (LAUNCHED, Observed(0.1, seconds_left=60.0)),
    ),
    (
        "warned, and then stopped",
        STOPPED,
        (
            *WARNED,
            Observed(2.0, must_stop=True, seconds_left=59.0),
            Observed(2.1, must_stop=True, seconds_left=58.9),
            Written(2.0 + PATIENCE),
        ),
    ),
    (
        "warned, and then cancelled by a person, who is not kept waiting",
        CANCELLED,
        (
            *WARNED,
            Observed(2.0, seconds_left=59.0),
            Written(2.0, True, True),
            Observed(2.1, seconds_left=58.9),
            Written(2.0 + PATIENCE, True, True),
        ),
    ),
    (
        "warned shortly before its end",
        warned(1.0),
        (*AT_WORK, Observed(1.0, seconds_left=1.0), Observed(1.1, seconds_left=0.9), Written(1.5)),
    ),
]


@pytest.mark.parametrize(
    ("ending", "events"), [case[1:] for case in ENDS], ids=[c[0] for c in ENDS]
)
def test_an_end(ending: Ending, events: tuple[AttemptEvent, ...]):
    ended(ending, *events)


def failed_with(*events: AttemptEvent) -> str:
    state, _ = after(*events)
    assert (state.phase, state.by_ranks) == (Phase.OVER, True)
    assert state.ending is not None
    assert state.ending.error is not None
    return state.ending.error.kind


def test_the_last_words_of_the_ranks_may_tell_the_cause_better():
    silent = (LAUNCHED, Observed(0.3, STARTED, {1: 1}), Observed(0.4 + SETTLE))
    assert failed_with(*silent, RanksEnded(2.0)) == "RankEnded"
    assert failed_with(*silent, RanksEnded(2.0, (BOOM,))) == "ModelRaised"


def test_a_rank_that_hangs_says_nothing_better():
    late = 1.0 + SILENCE + 1
    assert (
        failed_with(LAUNCHED, Observed(0.1, STARTED), Observed(late), RanksEnded(late))
        == "RankHung"
    )


LATE: list[tuple[str, Ending | None, tuple[AttemptEvent, ...]]] = [
    (
        "a rank that said late that it had finished",
        SUCCEEDED,
        (
            LAUNCHED,
            Observed(0.3, (FINISHED[0],), {0: 0, 1: 0}),
            Observed(0.4 + SETTLE),
            RanksEnded(2.0, (FINISHED[1],)),
        ),
    ),
    (
        "late words change no end that somebody asked for",
        CANCELLED,
        (
            LAUNCHED,
            Observed(1.0),
            Written(1.0, cancel_requested=True),
            RanksEnded(2.0, (BOOM, *FINISHED)),
        ),
    ),
    (
        "ranks that cannot be ended",
        FAULT,
        (LAUNCHED, Observed(1.0, FINISHED, {0: 0, 1: 0}), Interrupted(FAULT)),
    ),
    ("the lease is lost", None, (LAUNCHED, Observed(1.0), Interrupted(None), RanksEnded(2.0))),
    ("before the ranks are started", None, (Interrupted(None), RanksEnded(2.0))),
    ("while they are ended", None, (Interrupted(CANCELLED), Interrupted(None))),
    (
        "and they cannot be ended",
        None,
        (LAUNCHED, Observed(1.0), Interrupted(None), Interrupted(FAULT)),
    ),
]


@pytest.mark.parametrize(
    ("ending", "events"), [case[1:] for case in LATE], ids=[case[0] for case in LATE]
)
def test_what_comes_while_the_ranks_are_ended(
    ending: Ending | None, events: tuple[AttemptEvent, ...]
):
    state, todo = after(*events)
    assert (state.phase, state.ending, todo) == (Phase.OVER, ending, [])


def test_an_illegal_event_tells_what_happened_before():
    state, _ = after(LAUNCHED, *(Observed(0.1 * tick) for tick in range(3)), Interrupted(FAULT))
    with pytest.raises(
        IllegalEvent, match="Observed while ending, after Launched while preparing, Interrupted"
    ):
        step(state, Observed(1.0))


def test_states_are_compared_by_what_they_say():
    assert after(*AT_WORK)[0] == after(*AT_WORK)[0]
    stop = GracefulStop(STOPPED, 1.0 + PATIENCE, 0)
    assert after(*AT_WORK, Observed(1.0, must_stop=True))[0].stop == stop


LINES = st.lists(
    st.sampled_from([*STARTED, *FINISHED, *LOSS, BOOM, (0, None), (0, Chosen(0, 0, 4))]), max_size=3
).map(tuple)
TIMES = st.floats(0.0, 5.0)


def event_of(kind: type[Any], draw: Any, now: float) -> AttemptEvent:
    values: dict[type[Any], st.SearchStrategy[Any]] = {
        Launched: st.just(Launched(RankStates(2, now))),
        Observed: st.builds(
            Observed,
            st.just(now),
            LINES,
            st.dictionaries(st.integers(0, 1), st.sampled_from([0, 1, -9])),
            st.sampled_from([None, None, None, LIMIT]),
            st.booleans(),
            st.booleans(),
            st.none() | st.floats(0.0, 200.0),
        ),
        Written: st.builds(Written, st.just(now), st.booleans(), st.booleans(), st.integers(0, 3)),
        Interrupted: st.builds(Interrupted, st.sampled_from([None, FAULT, CANCELLED])),
        RanksEnded: st.builds(RanksEnded, st.just(now), LINES),
    }
    return draw(values[kind])


ANSWERS: dict[Any, type[Any]] = {
    Do.LAUNCH: Launched,
    Do.WATCH: Observed,
    Write(True): Written,
    Write(False): Written,
    Do.END_RANKS: RanksEnded,
}


@given(data=st.data())
@settings(max_examples=100)
def test_whatever_happens_the_ranks_are_ended_once_and_then_it_is_over(data: st.DataObject):
    """As the loop goes: of the instructions that wait, one is answered; its answer, or an
    interruption, is legal; every round brings the end or another such instruction."""
    state, todo, now = AttemptState(), deque[Instruction]([Do.LAUNCH]), 0.0
    done: list[Instruction] = []
    for _ in range(40):
        if not todo:
            break
        assert [each in ANSWERS for each in todo].count(True) == 1
        done.append(todo.popleft())
        if done[-1] in ANSWERS:
            now += data.draw(TIMES)
            kind = data.draw(st.sampled_from([*[ANSWERS[done[-1]]] * 6, Interrupted]))
            assert state.phase in LEGAL[kind]
            before = state
            state, more = step(state, event_of(kind, data.draw, now))
            todo.extend(more)
            if before.stop is not None:  # whoever asks later may only shorten the wait
                assert state.stop is not None
                assert state.stop.deadline <= before.stop.deadline
            assert bool(todo) == (state.phase is not Phase.OVER)
    assert done.count(Do.LAUNCH) == 1
    assert done.count(Do.END_RANKS) == (state.phase is Phase.OVER)
    assert done.count(Do.REQUEST_CHECKPOINT) <= 1


@given(data=st.data(), phase=st.sampled_from(Phase), kind=st.sampled_from(list(LEGAL)))
@settings(max_examples=100)
def test_events_out_of_their_phase_are_refused(data: st.DataObject, phase: Phase, kind: type[Any]):
    state = AttemptState(phase, RankStates(2, 0.0), ending=CANCELLED)
    event = event_of(kind, data.draw, 1.0)
    if phase in LEGAL[kind]:
        assert step(state, event) == step(state, event)
    else:
        with pytest.raises(IllegalEvent, match=phase.value):
            step(state, event)
