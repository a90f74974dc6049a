"""What a machine, a GPU or a rank's process uses, and a history of it that stays small.

    step      5 s   1 min   10 min      a point is the mean of what was sampled in a step
    kept    30 min    6 h     1 week    a newer point takes the place of the oldest

So a history has at most 1,728 points, however long it is.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import zip_longest
from math import inf
from statistics import fmean
from typing import Annotated

from pydantic import Field

Amount = Annotated[float, Field(ge=0, le=1e18)]


@dataclass(frozen=True, slots=True)
class Use:
    """Of the machine, of one GPU, or of a rank's process; None where nobody can tell.

    share            of the compute, 0 to 1; of a process: cores, which may be more than one
    memory, total    bytes in use, bytes there are
    celsius          temperature
    received, sent   bytes/s over the network; of a process: by TCP, also to its own machine
    watts            power
    """

    name: Annotated[str, Field(max_length=200)]
    share: Amount | None = None
    memory: Amount | None = None
    total: Amount | None = None
    celsius: Annotated[float, Field(ge=-300, le=1e6)] | None = None
    received: Amount | None = None
    sent: Amount | None = None
    watts: Amount | None = None


@dataclass(frozen=True, slots=True)
class UsePoint:
    """`uses` at Unix second `time`, each device at its place: of a node its machine, then its GPUs;
    of a run its ranks."""

    time: float
    uses: tuple[Use, ...]


@dataclass(frozen=True, slots=True)
class Resolution:
    """`count` points, one per `seconds`."""

    seconds: float
    count: int

    @property
    def span(self) -> float:
        """Seconds that are kept."""
        return self.seconds * self.count

    def slot(self, time: float) -> int:
        """The place of the point of that time among the `count`."""
        return int(time // self.seconds) % self.count


RESOLUTIONS = (Resolution(5, 360), Resolution(60, 360), Resolution(600, 1008))
NUMBERS = tuple(field.name for field in fields(Use) if field.name != "name")


class UseHistory:
    """Turns samples into the points that are kept of them."""

    def __init__(self) -> None:
        self._open: list[list[UsePoint]] = [[] for _ in RESOLUTIONS]

    def add(self, sample: UsePoint) -> list[tuple[int, UsePoint]]:
        """The points, each with the number of its resolution, whose step is over now."""
        done = []
        for level, resolution in enumerate(RESOLUTIONS):
            group = self._open[level]
            if group and group[0].time // resolution.seconds != sample.time // resolution.seconds:
                done.append((level, mean(group)))
                group.clear()
            group.append(sample)
        return done


def mean(group: Sequence[UsePoint]) -> UsePoint:
    """One point for several, at the time of the first."""
    places = zip_longest(*(point.uses for point in group), fillvalue=Use(""))
    return UsePoint(group[0].time, tuple(map(_mean, places)))


def _mean(uses: Iterable[Use]) -> Use:
    each = list(uses)
    known = {
        name: [value for use in each if (value := getattr(use, name)) is not None]
        for name in NUMBERS
    }
    values = {name: fmean(found) if found else None for name, found in known.items()}
    return Use(next((use.name for use in each if use.name), ""), **values)


def joined(points: Mapping[int, Sequence[UsePoint]]) -> list[UsePoint]:
    """One history of those of all resolutions: the finest that reaches back so far."""
    newest = max((point.time for each in points.values() for point in each), default=0.0)
    found: list[UsePoint] = []
    for level in sorted(points):
        since = newest - RESOLUTIONS[level].span
        until = found[0].time if found else inf
        of_level = sorted(points[level], key=lambda point: point.time)
        found = [point for point in of_level if since < point.time < until] + found
    return found


def thinned(points: Sequence[UsePoint], most: int) -> list[UsePoint]:
    """At most `most` points of equally long parts of the time; each is the mean of its part."""
    if len(points) <= most:
        return list(points)
    width = (points[-1].time - points[0].time) / most
    parts: dict[int, list[UsePoint]] = {}
    for point in points:
        place = min(most - 1, int((point.time - points[0].time) / width))
        parts.setdefault(place, []).append(point)
    return [mean(group) for group in parts.values()]


def largest(points: Iterable[UsePoint], value: Callable[[Use], float | None]) -> float | None:
    """The largest that is known; None where none is."""
    known = (value(use) for point in points for use in point.uses)
    return max((each for each in known if each is not None), default=None)
