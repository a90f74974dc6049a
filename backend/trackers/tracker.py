"""An experiment tracker: a program of others in which people follow their runs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Protocol

from backend.errors import StageflowError
from backend.runs.history.followed import NamedPoint, TrackerPlace
from backend.runs.states import RunState


class TrackerAway(StageflowError):
    """A tracker did not answer, or not as it should: it is asked again later."""


class TrackerRefuses(StageflowError):
    """A tracker will not take a run however often it is asked."""


class RunGoneThere(TrackerRefuses):
    """The tracker knows the run no more."""


class TrackerNotInstalled(TrackerRefuses):
    """The package that reaches a tracker is missing."""


@dataclass(frozen=True, slots=True)
class Told:
    """What is told of a run.

    key         names it for the tracker, whichever dashboard it is of
    folder      a name for it among the runs of this dashboard
    page        the URL of its page here
    parameters  what it was asked for, by dotted names
    tags        further facts; `labels` are those that people gave it
    points      those that were not sent yet, in their order; `first` counts those that were
    back_to     the first step that is made again, where an attempt went on from a checkpoint
    ended       its final state, where these are its last points
    started, finished   Unix seconds
    """

    key: str
    folder: str
    title: str
    page: str
    parameters: Mapping[str, str]
    tags: Mapping[str, str]
    labels: tuple[str, ...]
    points: Iterable[NamedPoint]
    first: int
    back_to: int | None
    started: float
    ended: RunState | None
    finished: float


class Tracker(Protocol):
    """A member of the catalog. `where` says for people where it is, without a secret; `pause` is
    the seconds between two sendings; `whole`: a run is sent at once when it has ended."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def where(self) -> str: ...
    @property
    def pause(self) -> float: ...
    @property
    def whole(self) -> bool: ...

    def send(self, told: Told, place: TrackerPlace) -> TrackerPlace:
        """Where the run is now. The same sent again from the same place leaves no second copy.
        Raises `TrackerAway` and `TrackerRefuses`."""
        ...


def require(package: str, extra: str) -> None:
    """Raises `TrackerNotInstalled` where there is no such package."""
    if find_spec(package) is None:
        raise TrackerNotInstalled(
            f"the package {package} is not installed where the dashboard runs",
            f"Install it there: pip install 'stageflow[{extra}]', and follow the run again.",
        )
