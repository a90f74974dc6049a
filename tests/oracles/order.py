"""The pattern that most orders share, action by action: some forwards, then one of everything.

warm-up 3           F0 F1 F2 | B0 F3 | B1 F4 | B2 F5 | B3 | B4 | B5
warm-up 3, delay 1  F0 F1 F2 | I0 F3 | I1 W0 F4 | I2 W1 F5 | I3 W2 | I4 W3 | I5 W4 W5
"""

from collections.abc import Iterator, Sequence

from backend.pipeline.actions import (
    Backward,
    BackwardInput,
    BackwardWeight,
    Compute,
    Forward,
    Step,
)
from backend.pipeline.schedules.interleaved import in_turns
from backend.pipeline.schedules.schedule import Schedule
from backend.pipeline.shape import Seat


def order(rule: Schedule, seat: Seat) -> Iterator[Compute]:
    """What the rank on `seat` computes, first to last."""
    if rule.order is not None:
        yield from rule.order(seat, seat.shape)
    elif rule.flushes:
        for update in rule.updates(seat):
            yield from play(rule, seat, update)
            yield from (Step(stage) for stage in seat.stages)
    else:
        last = {update[-1] for update in rule.updates(seat)}
        for action in play(rule, seat, seat.microbatches):
            yield action
            if isinstance(action, Backward | BackwardWeight) and action.microbatch in last:
                yield Step(action.stage)


def play(rule: Schedule, seat: Seat, microbatches: Sequence[int]) -> Iterator[Compute]:
    """The pattern over `microbatches`, once, without the updates."""
    forwards = list(in_turns(seat.stages, microbatches, seat.positions))
    backwards = list(in_turns(seat.stages[::-1], microbatches, seat.positions))
    start = min(rule.warm_up(seat), len(forwards))
    late = rule.delay(seat) if rule.delay else 0
    yield from (Forward(*place) for place in forwards[:start])
    for done, place in enumerate(backwards):
        if rule.delay is None:
            yield Backward(*place)
        else:
            yield BackwardInput(*place)
            if done >= late:
                yield BackwardWeight(*backwards[done - late])
        if done + start < len(forwards):
            yield Forward(*forwards[done + start])
    if rule.delay is not None:
        yield from (BackwardWeight(*place) for place in backwards[max(0, len(backwards) - late) :])
