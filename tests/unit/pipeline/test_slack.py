"""Slack by its definition: an action that takes so much longer costs nothing, and more costs it."""

import random
from collections.abc import Iterator
from contextlib import suppress

import numpy as np
import pytest

from backend.errors import InvalidInput
from backend.pipeline.clock.durations import seconds
from backend.pipeline.clock.slack import slack
from backend.pipeline.clock.walk import walk
from backend.pipeline.kinds import Is
from backend.pipeline.lower import lower
from backend.pipeline.program import Program
from backend.pipeline.schedules.catalog import SCHEDULES, schedule
from backend.pipeline.shape import Shape
from backend.pipeline.simulate import simulate

MORE = 0.37
SHAPES = (
    Shape((1, 1, 1, 1), 16, 8),
    Shape((1, 1, 1), 4, 2),
    Shape((2, 1), 8, 4),
    Shape((3, 1, 2), 12, 6),
    Shape((1, 1), 6, 3, advance=2, recompute=True),
    Shape((1, 1), 8, 4, chunks=2),
    Shape((1, 1, 1), 8, 4, run_ahead=1),
)


def admitted(name: str) -> Iterator[Shape]:
    for shape in SHAPES:
        with suppress(InvalidInput):
            schedule(name).check(shape)
            yield shape


class Drawn:
    """Seconds drawn once for each rank, kind and stage."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def _draw(self, *names: object) -> float:
        return random.Random(f"{self._seed}{names}").uniform(0.1, 3.0)

    def compute(self, rank: int, action: object) -> float:
        return self._draw(rank, type(action).__name__, action.stage)  # type: ignore[attr-defined]

    def transfer(self, message: object, source: int, to: int) -> float:
        return self._draw(source, to, message.flow)  # type: ignore[attr-defined]

    def collective(self, action: object) -> float:
        return self._draw(type(action).__name__, action.stage)  # type: ignore[attr-defined]


def makespan(program: Program, busy: np.ndarray, hops: np.ndarray) -> float:
    """By the clock's own walk."""
    walked = walk(program.waits, busy, hops)
    return float(max(walked.ends.max(initial=0.0), walked.arrivals.max(initial=0.0)))


@pytest.mark.parametrize("name", sorted(name for name, one in SCHEDULES.items() if one.trains))
@pytest.mark.parametrize("seed", range(3))
def test_each_action_may_end_so_much_later_and_no_more(name: str, seed: int) -> None:
    draw = random.Random(seed)
    shape = draw.choice([*admitted(name)])
    program, durations = lower(schedule(name), shape), Drawn(seed)
    found = slack(program, simulate(program, durations))
    assert (found == 0).any()
    plan, took = program.waits, seconds(program, durations)
    busy, hops = took[plan.rows], np.zeros(len(plan.rows))
    busy[plan.alone], hops[plan.gives >= 0] = 0.0, took[plan.sends]
    whole = makespan(program, busy, hops)
    computes = np.flatnonzero(program.rows.are(Is.COMPUTE)[plan.rows])
    for node in draw.sample(computes.tolist(), min(25, len(computes))):
        free = found[plan.rows[node]]
        longer = busy.copy()
        longer[node] += free
        assert makespan(program, longer, hops) == pytest.approx(whole, rel=1e-12)
        longer[node] += MORE
        assert makespan(program, longer, hops) == pytest.approx(whole + MORE, rel=1e-12)
    giving = np.flatnonzero(plan.gives >= 0)
    for node, row in draw.sample(list(zip(giving, plan.sends, strict=True)), min(10, len(giving))):
        later = hops.copy()
        later[node] += found[row]
        assert makespan(program, busy, later) == pytest.approx(whole, rel=1e-12)
        later[node] += MORE
        assert makespan(program, busy, later) == pytest.approx(whole + MORE, rel=1e-12)
