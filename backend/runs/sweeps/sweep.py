"""Sweeps: trainings over values of some settings, asked for as one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import product
from math import exp, log, prod
from random import Random
from typing import Literal

from backend.errors import InvalidInput
from backend.runs.events import HELD_OUT_LOSS
from backend.runs.request.spec import TrainSpec

MOST = 300
"""Runs of a sweep."""
TRIES = 100
"""Draws for each run that is asked for: values that were drawn before count once."""

Value = bool | int | float | str
Point = dict[str, Value]


@dataclass(frozen=True, slots=True)
class SweepAxis:
    """A setting (`backend.runs.sweeps.axes.SETTINGS`, or "set.NAME" for a parameter of the model)
    and its `values`; or, for a random search, a range from `low` to `high`, evenly, evenly by its
    logarithm (`log`), or in whole numbers (`whole`)."""

    name: str
    values: tuple[Value, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    whole: bool = False

    def __post_init__(self) -> None:
        if self.values or (self.low < self.high and not (self.log and self.low <= 0)):
            return
        raise InvalidInput(
            f"{self.name} has no values, nor a range from {self.low:g} up to {self.high:g}",
            f"Give values ({self.name}=0.1,0.01), or a range ({self.name}=log:0.001:0.1).",
        )

    def drawn(self, random: Random) -> Value:
        """One of its values, each as likely as another."""
        if self.values:
            return random.choice(self.values)
        if self.whole:
            return random.randint(round(self.low), round(self.high))
        if self.log:
            return exp(random.uniform(log(self.low), log(self.high)))
        return random.uniform(self.low, self.high)


@dataclass(frozen=True, slots=True)
class Early:
    """When runs of a sweep end before they are done. None of it by default.

    first    the other runs, once one has reached the target of the trainings
    median   a run that falls behind the others (`backend.runs.sweeps.median.falls_behind`)
    metric   of held-out samples, by which runs are compared
    better   which of its values are; "" = known of the metrics that a run tells by itself
    grace    evaluations that a run has in any case
    """

    first: bool = False
    median: bool = False
    metric: str = HELD_OUT_LOSS
    better: Literal["", "larger", "smaller"] = ""
    grace: int = 2


@dataclass(frozen=True, slots=True)
class SweepSpec:
    """`base` with every combination of the axes' values; `draws` > 0: with so many random ones, by
    `seed`."""

    base: TrainSpec
    axes: tuple[SweepAxis, ...]
    draws: int = 0
    seed: int = 0
    early: Early = field(default_factory=Early)

    def __post_init__(self) -> None:
        names = [axis.name for axis in self.axes]
        if not names or len(set(names)) < len(names):
            raise InvalidInput("a sweep needs axes, each once", "Give lr=0.1,0.01 for example.")
        if ranged := [axis.name for axis in self.axes if not axis.values and not self.draws]:
            raise InvalidInput(
                f"a grid has no ranges: {', '.join(ranged)}",
                "Give values, or ask for a random search.",
            )

    @property
    def num_points(self) -> int:
        """How many runs it has at most, without making them."""
        return self.draws or prod(len(axis.values) for axis in self.axes)

    def points(self) -> list[Point]:
        """The values of each run, no two alike; of a grid the last axis goes round first. Raises
        `InvalidInput` where these are more than `MOST`, or none."""
        if not 0 < self.num_points <= MOST:
            raise InvalidInput(
                f"the sweep has {self.num_points:,} runs", f"A sweep has 1 to {MOST} runs."
            )
        return list(self._drawn() if self.draws else self._grid())

    def _grid(self) -> Iterator[Point]:
        values = (dict.fromkeys(axis.values) for axis in self.axes)
        for chosen in product(*values):
            yield {axis.name: value for axis, value in zip(self.axes, chosen, strict=True)}

    def _drawn(self) -> Iterator[Point]:
        random, seen = Random(self.seed), set[tuple[Value, ...]]()
        for _ in range(TRIES * self.draws):
            point = {axis.name: axis.drawn(random) for axis in self.axes}
            if len(seen) < self.draws and tuple(point.values()) not in seen:
                seen.add(tuple(point.values()))
                yield point


@dataclass(frozen=True, slots=True)
class SweepRun:
    """One of a sweep's runs, by its number from 1. `run_id` is None where it was deleted; `ended`
    says why the sweep ended it early."""

    number: int
    run_id: int | None
    values: Mapping[str, Value]
    ended: str = ""


@dataclass(frozen=True, slots=True)
class Sweep:
    """Runs that were asked for as one. `is_open`: some may still be ended early."""

    id: int
    project_id: int
    name: str
    owner: str
    spec: SweepSpec
    is_open: bool
    created_at: datetime
    runs: tuple[SweepRun, ...]

    @property
    def run_ids(self) -> list[int]:
        """Of the runs that there are."""
        return [each.run_id for each in self.runs if each.run_id is not None]
