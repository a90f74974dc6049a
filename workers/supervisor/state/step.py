"""What an attempt at a run does next: a pure function of its state and of what happened.

    PREPARING --Launched--> WATCHING --Observed--> WRITING
        |                    |   ^---- Written ------ |
        v                    v                        v
      ENDING <---------------+------------------------+
        |---- RanksEnded --> OVER: `ending` is to be written

No I/O and no clock: `workers.supervisor.supervision` performs the instructions.
"""

from dataclasses import dataclass, field, replace
from enum import Enum

from backend.runs.events import Chosen, Metrics
from backend.runs.states import RunState
from workers.supervisor.state.ending import (
    CANCELLED,
    CUT_OFF,
    HELD_UP,
    SUCCEEDED,
    Ending,
    asked_of_agent,
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
from workers.supervisor.state.rank_states import RankStates

FLUSH = 0.4
"""Seconds between writes, and between looks at the cancel flag."""
NO_RANKS = RankStates(0, 0.0)
REMEMBERED = 20
"""Events that an `IllegalEvent` tells."""


class Phase(Enum):
    PREPARING = "preparing"
    WATCHING = "watching"
    WRITING = "writing"
    ENDING = "ending"
    OVER = "over"


WORKING = frozenset({Phase.WATCHING, Phase.WRITING})
LEGAL: dict[type[AttemptEvent], frozenset[Phase]] = {
    Launched: frozenset({Phase.PREPARING}),
    Observed: frozenset({Phase.WATCHING}),
    Written: frozenset({Phase.WRITING}),
    Interrupted: frozenset(Phase) - {Phase.OVER},
    RanksEnded: frozenset({Phase.ENDING}),
}


class IllegalEvent(Exception):
    """An event that cannot happen in this phase: a fault of the supervisor, with its history."""


@dataclass(frozen=True, slots=True)
class GracefulStop:
    """The end that somebody asked for, and until when a newer checkpoint is waited for."""

    ending: Ending
    deadline: float
    num_checkpoints: int


@dataclass(frozen=True, slots=True)
class AttemptState:
    """`written` is when the last write began. `ending` is how the attempt ends; None where another
    agent says that. `by_ranks`: their last lines may tell the cause better."""

    phase: Phase = Phase.PREPARING
    ranks: RankStates = NO_RANKS
    written: float = 0.0
    num_checkpoints: int = 0
    has_losses: bool = False
    database_answers: bool = True
    stop: GracefulStop | None = None
    ending: Ending | None = None
    by_ranks: bool = False
    history: tuple[str, ...] = field(default=(), compare=False)


Step = tuple[AttemptState, list[Instruction]]


def step(state: AttemptState, event: AttemptEvent) -> Step:
    """The state after `event`, and what is to be done. Raises `IllegalEvent`."""
    happened = f"{type(event).__name__} while {state.phase.value}"
    if state.phase not in LEGAL[type(event)]:
        raise IllegalEvent(f"{happened}, after {', '.join(state.history) or 'nothing'}")
    after, todo = _stepped(state, event)
    if not {state.phase, after.phase} <= WORKING:
        after = replace(after, history=(*state.history, happened)[-REMEMBERED:])
    return after, todo


def _stepped(state: AttemptState, event: AttemptEvent) -> Step:
    match event:
        case Launched(ranks):
            launched = replace(state, ranks=ranks, written=ranks.begun, phase=Phase.WATCHING)
            return launched, [Do.WATCH]
        case Observed():
            return _observed(state, event)
        case Written(now, answered, cancel_requested, num, stacks_asked):
            num = max(num, state.num_checkpoints)
            state = replace(state, database_answers=answered, num_checkpoints=num)
            after, todo = _stop(state, now, CANCELLED if cancel_requested else None)
            return after, [*([Do.SHOW_STACKS] if stacks_asked else []), *todo]
        case Interrupted(ending):
            if state.phase is not Phase.ENDING:
                return _end(state, ending)
            ending = state.ending and ending  # a lost lease stays lost
            return replace(state, ending=ending, by_ranks=False, phase=Phase.OVER), []
        case RanksEnded(now, lines):
            ending = _heard_out(replace(state, ranks=state.ranks.hear(lines, now)))
            return replace(state, ending=ending, phase=Phase.OVER), []


def _observed(state: AttemptState, event: Observed) -> Step:
    ranks = state.ranks.hear(event.lines, event.now).exited(event.exits, event.now)
    ranks = ranks.limits(event.limit, event.now)
    told = [told for _, told in event.lines]
    has_losses = any(isinstance(e, Metrics) and e.name == "loss" for e in told)
    state = replace(state, ranks=ranks, has_losses=state.has_losses or has_losses)
    after, todo = _decided(state, event)
    return after, [*(PassOn(e) for e in told if isinstance(e, Chosen)), *todo]


def _decided(state: AttemptState, event: Observed) -> Step:
    """Whether the attempt is at its end, else whether it is time to write."""
    if event.lease_lapsed:
        return _end(state, HELD_UP if state.database_answers else CUT_OFF)
    if state.ranks.all_finished:
        return _end(state, SUCCEEDED)
    if error := state.ranks.error(event.now):
        return _end(replace(state, by_ranks=True), Ending(RunState.FAILED, error))
    asked = asked_of_agent(event.must_stop, event.seconds_left, state.ranks.has_begun)
    if _is_sooner(asked, state.stop, event.now):  # first, however long each write takes
        return _stop(state, event.now, asked)
    if state.stop is not None or event.now - state.written >= FLUSH:
        is_running = state.ranks.all_started
        return replace(state, written=event.now, phase=Phase.WRITING), [Write(is_running)]
    return state, [Do.WATCH]


def _stop(state: AttemptState, now: float, asked: Ending | None) -> Step:
    """Go on watching, unless the attempt is `asked` to end, or was, and has its last checkpoint,
    which is asked for once. The first who asks counts, unless somebody has less patience."""
    todo: list[Instruction] = [Do.WATCH]
    stop = state.stop
    if asked is not None and _is_sooner(asked, stop, now):
        can_save = state.ranks.all_started and state.has_losses
        num = stop.num_checkpoints if stop else state.num_checkpoints
        todo = [Do.WATCH] if stop else [Do.REQUEST_CHECKPOINT, Do.WATCH]
        stop = GracefulStop(asked, now + asked.patience if can_save else now, num)
        state = replace(state, stop=stop)
    if stop and (now >= stop.deadline or state.num_checkpoints > stop.num_checkpoints):
        return _end(state, stop.ending)
    return replace(state, phase=Phase.WATCHING), todo


def _is_sooner(asked: Ending | None, stop: GracefulStop | None, now: float) -> bool:
    """Does who asks now wait less long than who asked before?"""
    return asked is not None and (stop is None or now + asked.patience < stop.deadline)


def _end(state: AttemptState, ending: Ending | None) -> Step:
    return replace(state, ending=ending, phase=Phase.ENDING), [Do.END_RANKS]


def _heard_out(state: AttemptState) -> Ending | None:
    """How the attempt ends, once the last lines of its ranks are heard."""
    if not state.by_ranks or state.ending is None:
        return state.ending
    cause = state.ranks.cause() or state.ending.error
    return SUCCEEDED if state.ranks.all_finished else Ending(RunState.FAILED, cause)
