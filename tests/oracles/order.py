"""The pattern that most orders share, action by action: some forwards, then one of everything.

warm-up 3           F0 F1 F2 | B0 F3 | B1 F4 | B2 F5 | B3 | B4 | B5
warm-up 3, delay 1  F0 F1 F2 | I0 F3 | I1 W0 F4 | I2 W1 F5 | I3 W2 | I4 W3 | I5 W4 W5
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from backend.pipeline.actions import (
    Backward,
    BackwardInput,
    BackwardWeight,
    Compute,
    Forward,
    Step,
)
from backend.pipeline.kinds import Kind
from backend.pipeline.schedules.interleaved import in_turns
from backend.pipeline.schedules.schedule import Schedule
from backend.pipeline.shape import RankCoordinates

COMPUTES = {
    Kind.FORWARD: Forward,
    Kind.BACKWARD: Backward,
    Kind.BACKWARD_INPUT: BackwardInput,
    Kind.BACKWARD_WEIGHT: BackwardWeight,
}


def order(rule: Schedule, coordinates: RankCoordinates) -> Iterator[Compute]:
    """What the rank on `coordinates` computes, first to last."""
    if rule.order is not None:
        yield from rule.order(coordinates, coordinates.shape)
    elif rule.batch_order is not None and coordinates.chunks > 1:
        stages, size = coordinates.stages, coordinates.pipeline_size
        for update in rule.updates(coordinates):
            parts = rule.batch_order(coordinates.pipeline_rank, size, len(stages), len(update))
            yield from (COMPUTES[kind](stages[chunk], update[k]) for kind, chunk, k in parts)
            yield from (Step(stage) for stage in stages)
    elif rule.flushes:
        for update in rule.updates(coordinates):
            yield from play(rule, coordinates, update)
            yield from (Step(stage) for stage in coordinates.stages)
    else:
        ends = ends_of(rule.updates(coordinates))
        yield from (Step(stage) for _ in range(ends[None]) for stage in coordinates.stages)
        for action in play(rule, coordinates, coordinates.microbatches):
            yield action
            if isinstance(action, Backward | BackwardWeight):
                yield from (Step(action.stage) for _ in range(ends[action.microbatch]))


def ends_of(updates: Iterable[Sequence[int]]) -> Counter[int | None]:
    """How many updates end with each microbatch: one without any, as a replica has it in a batch
    of fewer than there are replicas, ends where that before it does (None: before all)."""
    found: Counter[int | None] = Counter()
    last = None
    for update in updates:
        last = update[-1] if update else last
        found[last] += 1
    return found


def play(
    rule: Schedule, coordinates: RankCoordinates, microbatches: Sequence[int]
) -> Iterator[Compute]:
    """The pattern over `microbatches`, once, without the updates."""
    forwards = list(in_turns(coordinates.stages, microbatches, coordinates.pipeline_size))
    backwards = list(in_turns(coordinates.stages[::-1], microbatches, coordinates.pipeline_size))
    start = min(rule.warm_up(coordinates), len(forwards))
    late = rule.delay(coordinates) if rule.delay else 0
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
