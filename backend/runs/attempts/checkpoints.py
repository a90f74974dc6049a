"""Checkpoints of trainings: what is kept of a run's state, and where the next attempt begins."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from backend.runs.history.records import StoredAttempt
from backend.runs.run import Run, RunError

RESTARTS = 3
"""Attempts in a row that may end without a newer checkpoint before the run fails."""
ALL_RESTARTS = 50
"""Attempts in all that ranks may end, whatever they told of their progress, or in which nothing
has begun."""
OF_RANKS = frozenset({"PeerLost", "RankHung", "RankKilled"})
NOT_BEGUN = "NotBegun"
"""The error of an attempt whose agent ended before a rank had begun its work."""
FAULTS = OF_RANKS | frozenset(
    {
        NOT_BEGUN,
        "AgentHeldUp",
        "AgentLost",
        "AgentStopped",
        "AgentWarned",
        "DatabaseUnreachable",
        "NodeLost",
        "NodesMissing",
        "NodesReturned",
        "OutOfDescriptors",
    }
)
"""Errors of machines and processes: the same again may go well. What the model, its data or
a limit caused would come again."""


_STAGE_FILE = re.compile(r"stage-(\d+)-pipeline-\d+(-replica-\d+)?\.safetensors")


def stage_file(stage: int, pipeline: int, replica: int = 0) -> str:
    """The name of the file with a pipeline's part of a stage, or with what one of its other
    replicas has of sharded state."""
    shard = f"-replica-{replica}" if replica else ""
    return f"stage-{stage}-pipeline-{pipeline}{shard}.safetensors"


def part_of(name: str) -> str:
    """The part of a checkpoint that a file has, wherever it came from: as `stage_file` names it."""
    found = _STAGE_FILE.search(name)
    return found[0] if found else name


def stage_of(name: str) -> int | None:
    """The stage whose part a file has; before `stage_file` there may be where it came from."""
    found = _STAGE_FILE.search(name)
    return int(found[1]) if found else None


@dataclass(frozen=True, slots=True)
class CheckpointFile:
    """One pipeline's part of one stage (`stage_file`); `size` in bytes, `sha256` in hex."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a training is: `epoch` whole epochs and `samples` samples of the next one,
    which are `step` weight updates since the start of the run. `best`: no evaluation of the run
    was better before."""

    epoch: int
    samples: int
    step: int
    best: bool = False


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


def may_restart(
    run: Run,
    error: RunError | None,
    newest: Checkpoint | None,
    attempts: Sequence[StoredAttempt] = (),
) -> bool:
    """Does a run with these `attempts`, of which this error ended the last, go on by itself from
    `newest`? From its beginning one that has not begun, and one that a pool carries: its cluster
    may end a job before there is anything to keep. An attempt that has not begun is none in vain,
    but for a pool, whose jobs may be too short for a beginning."""
    if error is None or error.kind not in FAULTS or run.cancel_requested:
        return False
    pooled = run.spec.pool is not None
    if newest is None and not pooled and error.kind != NOT_BEGUN:
        return False
    kinds = [each.error.kind if each.error else "" for each in attempts[:-1]] + [error.kind]
    if sum(kind in OF_RANKS | {NOT_BEGUN} for kind in kinds) >= ALL_RESTARTS:
        return False
    own = newest if newest is not None and newest.run_id == run.id else None
    before = _fruitful(attempts, own)
    in_vain = run.attempt - before - (0 if pooled else kinds[before:].count(NOT_BEGUN))
    return in_vain < RESTARTS


def _fruitful(attempts: Sequence[StoredAttempt], newest: Checkpoint | None) -> int:
    """The last attempt that trained on from where it began, and left a checkpoint of it; 0 where
    none did."""
    following = [each.step or 0 for each in attempts[1:]] + [0]
    for attempt, step in reversed([*zip(attempts, following, strict=True)]):
        is_newest = newest is not None and newest.attempt == attempt.number
        reached = newest.mark.step if newest is not None and is_newest else step
        if reached > (attempt.step or 0):
            return attempt.number
    return 0
