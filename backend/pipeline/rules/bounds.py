"""BOUND: no rank holds more than its schedule promises."""

from collections.abc import Iterator, Sequence

import numpy as np

from backend.pipeline.held import in_flight, live_versions
from backend.pipeline.kinds import Ints
from backend.pipeline.program import Program
from backend.pipeline.rules.faults import Broken, Rule
from backend.pipeline.schedules.schedule import Schedule


def bounds(program: Program, rule: Schedule) -> Iterator[Broken]:
    """The first row of each rank after which it holds too much."""
    ranks = program.shape.coordinates
    promised = [rule.in_flight(coordinates) for coordinates in ranks]
    yield from _beyond(program, in_flight(program.rows), promised, rule, "forwards in flight")
    promised = [rule.live(coordinates) for coordinates in ranks]
    for chunk in range(program.shape.chunks):
        held = live_versions(program, chunk)
        what = "versions of stage {stage}"
        yield from _beyond(program, held, promised, rule, what, chunk)


def _beyond(
    program: Program,
    held: Ints,
    promised: Sequence[int],
    rule: Schedule,
    what: str,
    chunk: int = 0,
) -> Iterator[Broken]:
    beyond = np.flatnonzero(held > np.asarray(promised)[program.rank])
    ranks, first = np.unique(program.rank[beyond], return_index=True)
    for rank, row in zip(ranks.tolist(), beyond[first].tolist(), strict=True):
        own = slice(program.bounds[rank], program.bounds[rank + 1])
        named = what.format(stage=program.shape.coordinates[rank].stages[chunk])
        text = f"is the first of up to {held[own].max()} {named}; {rule.name} promises "
        yield Broken(Rule.BOUND, np.array([row]), text + str(promised[rank]))
