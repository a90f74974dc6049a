"""Which runs to list, and one page of them."""

from dataclasses import dataclass

from backend.runs.run import Run
from backend.runs.states import RunState


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Runs that meet every given condition. No states = any; `text` is sought in the name."""

    states: tuple[RunState, ...] = ()
    kind: str | None = None
    text: str = ""
    definition_id: int | None = None


@dataclass(frozen=True, slots=True)
class RunPage:
    """Newest first; `total` counts every run that meets the filter."""

    runs: tuple[Run, ...]
    total: int
