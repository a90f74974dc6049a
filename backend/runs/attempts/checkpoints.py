"""Checkpoints of trainings: what is kept of a run's state, and where the next attempt begins."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from backend.errors import NotFound
from backend.runs.attempts.fence import Fence
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run, RunError

RESTARTS = 3
"""Attempts in a row that may end without a newer checkpoint before the run fails."""
FAULTS = frozenset(
    {
        "AgentHeldUp",
        "AgentLost",
        "AgentStopped",
        "DatabaseUnreachable",
        "NodeLost",
        "NodesMissing",
        "PeerLost",
        "RankHung",
        "RankKilled",
    }
)
"""Errors of machines and processes: the same again may go well. What the model, its data or
a limit caused would come again."""


@dataclass(frozen=True, slots=True)
class CheckpointFile:
    """One pipeline's part of one stage; `size` in bytes, `sha256` in hex."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a training is: `epoch` whole epochs and `samples` samples of the next one,
    which are `step` weight updates since the start of the run."""

    epoch: int
    samples: int
    step: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a training after `mark`, whole: every stage's file lies in `folder`."""

    id: int
    run_id: int
    attempt: int
    mark: Mark
    files: tuple[CheckpointFile, ...]
    folder: Path
    created_at: datetime

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    @property
    def is_here(self) -> bool:
        """Does this machine see all files, as it was told?"""
        return all((self.folder / file.name).is_file() for file in self.files)


class CheckpointStore(Protocol):
    def folder(self, run_id: int, attempt: int, step: int) -> Path:
        """Where the files of a checkpoint belong; one folder for each."""
        ...

    def add(
        self,
        fence: Fence,
        mark: Mark,
        files: Sequence[CheckpointFile],
        keep: int,
        batch: int = 0,
    ) -> None:
        """Commit a checkpoint whose files are in their folder, and let go of all but the
        newest `keep` of the run. The same one again changes nothing."""
        ...

    def get(self, checkpoint_id: int) -> Checkpoint:
        """Raises `NotFound`."""
        ...

    def list(self, run_id: int) -> Sequence[Checkpoint]:
        """The newest first."""
        ...

    def forget(self, run_id: int) -> None:
        """Remove the files of a run that is no more."""
        ...


def may_restart(run: Run, error: RunError | None, newest: Checkpoint | None) -> bool:
    """Does a run that this error ended go on by itself from `newest`?"""
    if newest is None or error is None or error.kind not in FAULTS or run.cancel_requested:
        return False
    fruitful = newest.attempt if newest.run_id == run.id else 0
    return run.attempt - fruitful < RESTARTS


def beginnings(run: Run, store: CheckpointStore) -> Sequence[Checkpoint]:
    """Where the next attempt may begin, the best first: the run's own checkpoints, then the
    one that it was launched from, if it is still there."""
    own = tuple(store.list(run.id))
    if isinstance(run.spec, TrainSpec) and run.spec.checkpoint_id is not None:
        with suppress(NotFound):
            return (*own, store.get(run.spec.checkpoint_id))
    return own
