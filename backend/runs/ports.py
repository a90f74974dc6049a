"""What runs need from the outside: stores whose clock decides leases, and a queue that wakes.

Methods that take a `Fence` change something only while that attempt holds the run, and
raise `LeaseLost` otherwise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from backend.definitions.ports import DefinitionStore
from backend.errors import StageflowError
from backend.runs.attempts.attempts import StoredAttempt
from backend.runs.attempts.checkpoints import CheckpointStore
from backend.runs.attempts.fence import Fence
from backend.runs.dispatch.fairness import LoadStore
from backend.runs.dispatch.leases import LeaseStore
from backend.runs.dispatch.nodes import NodeStore
from backend.runs.dispatch.reservations import ReservationStore
from backend.runs.events import Metrics
from backend.runs.history.labels import LabelStore
from backend.runs.history.listing import RunFilter, RunOrder, RunPage
from backend.runs.history.records import (
    LogLine,
    MetricPoint,
    SpanBatch,
    StoredArtifact,
    TimelineKind,
)
from backend.runs.plans import PlanStore
from backend.runs.profiles import ProfileStore
from backend.runs.request.spec import RunSpec
from backend.runs.run import Run, RunError, RunProgress, RunSummary
from backend.runs.states import RunState
from backend.sandbox_level import SandboxLevel

LogText = tuple[int | None, float, str]
"""Rank (None = the agent), Unix seconds, text."""


class QueueUnreachable(StageflowError):
    """The queue does not answer; runs stay stored and start when an agent looks for them."""


class RunStore(Protocol):
    def add(self, name: str, spec: RunSpec, owner: str, origin_id: int | None) -> Run: ...

    def get(self, run_id: int) -> Run:
        """Raises `NotFound`."""
        ...

    def several(self, run_ids: Sequence[int]) -> Sequence[Run]:
        """Those that there are, in the order of the ids."""
        ...

    def page(self, wanted: RunFilter, order: RunOrder, limit: int, offset: int) -> RunPage: ...

    def count(self) -> Mapping[RunState, int]:
        """How many runs there are in each state that some run has."""
        ...

    def waiting(self) -> Sequence[int]:
        """Ids of the queued runs, oldest first."""
        ...

    def asked(self, run_id: int) -> RunSpec | None:
        """What a queued run is asked for; None where the run is not queued."""
        ...

    def claim(
        self, run_id: int, node: str, token: str, lease: float, others: Sequence[str] = ()
    ) -> Run | None:
        """Compare-and-set from queued to starting, with `node` and the `others` reserved, all
        or none; None where the run is not queued or one of them is held by another run."""
        ...

    def cancel_queued(self, run_id: int) -> bool:
        """Compare-and-set from queued to cancelled."""
        ...

    def request_cancel(self, run_id: int) -> bool:
        """Ask the holder of a live run to end it."""
        ...

    def lost(self) -> Sequence[Run]:
        """The live runs whose lease is over."""
        ...

    def give_up(self, lost: Run, state: RunState, error: RunError, at_once: bool = False) -> bool:
        """Compare-and-set: end the attempt that `lost` tells of, if its lease is over or
        `at_once`, and put the run into `state`: queued again, or a final one."""
        ...

    def attempts(self, run_id: int) -> Sequence[StoredAttempt]:
        """The first one first."""
        ...

    def beat(self, fence: Fence, lease: float) -> bool:
        """Renew the lease; True where a cancel was asked for."""
        ...

    def written(self, fence: Fence) -> int:
        """The number of the attempt's newest numbered write; 0 where there is none."""
        ...

    def begin(self, fence: Fence) -> None:
        """From starting to running. Raises `IllegalMove`."""
        ...

    def isolated(self, fence: Fence, level: SandboxLevel) -> None:
        """Note the sandbox in which the ranks of this attempt are started."""
        ...

    def resumed(self, fence: Fence, step: int) -> None:
        """Note the checkpoint from which this attempt goes on."""
        ...

    def progress(self, fence: Fence, progress: RunProgress) -> None: ...

    def finish(
        self, fence: Fence, state: RunState, summary: RunSummary, error: RunError | None
    ) -> None:
        """To a final state, or back to queued for another attempt. Raises `IllegalMove`."""
        ...

    def delete(self, run_id: int) -> bool:
        """Take an ended run away with all its records; False where there is no such run, or
        it has not ended. What others measured or made from it stays."""
        ...


class LogStore(Protocol):
    def add(self, fence: Fence, lines: Sequence[LogText], batch: int = 0) -> None:
        """`batch` numbers the writes of an attempt from 1: one that comes again changes
        nothing; 0 = not numbered. So in the other stores."""
        ...

    def list(self, run_id: int, after: int, limit: int) -> Sequence[LogLine]:
        """Up to `limit` lines whose sequence number is above `after`, in order."""
        ...


class MetricStore(Protocol):
    def add(self, fence: Fence, metrics: Metrics, batch: int = 0) -> None: ...

    def forget(self, fence: Fence, step: int) -> None:
        """Take back the points from `step` on: they will be made again."""
        ...

    def copy(self, from_run: int, to_run: int, step: int) -> None:
        """Give a run the points that another one has before `step`."""
        ...

    def list(self, run_id: int, name: str) -> Sequence[MetricPoint]:
        """By step."""
        ...

    def curve(self, run_id: int, name: str, num_points: int) -> Sequence[MetricPoint]:
        """By step; above `num_points` points each is the mean of neighbours."""
        ...

    def last(self, run_id: int, name: str, count: int) -> Sequence[MetricPoint]:
        """The `count` points with the largest steps, by step."""
        ...

    def epoch_means(self, run_id: int, name: str, count: int) -> Sequence[float]:
        """The mean of each of the newest `count` epochs, in order."""
        ...

    def names(self, run_id: int) -> Sequence[str]: ...


class SpanStore(Protocol):
    def add(self, fence: Fence, batches: Sequence[SpanBatch], batch: int = 0) -> None: ...

    def list(self, run_id: int, kind: TimelineKind, segment: int) -> Sequence[SpanBatch]:
        """Those of the newest attempt that has any."""
        ...

    def segments(self, run_id: int, kind: TimelineKind) -> Sequence[int]:
        """Ascending."""
        ...


class ArtifactStore(Protocol):
    def add(self, fence: Fence, name: str, path: Path, batch: int = 0) -> StoredArtifact:
        """Keep a copy of the file; an older one of that name in the run is replaced."""
        ...

    def list(self, run_id: int) -> Sequence[StoredArtifact]:
        """By name."""
        ...

    def prune(self, digests: Sequence[str]) -> None:
        """Delete the bytes of these files, as far as no run has them any more."""
        ...


class Notifier(Protocol):
    """Tells people that a run has ended. It never raises and never waits."""

    def notify(self, run: Run) -> None: ...

    def close(self) -> None:
        """Wait, for a few seconds at most, until what was told has gone out."""
        ...


class Queue(Protocol):
    """Wakes a node's agent. A message that is lost costs time, never a run."""

    def publish(self, run_id: int, node: str) -> None:
        """Raises `QueueUnreachable` within about two seconds."""
        ...

    def wake(self, node: str) -> None:
        """Let the agent look into the database now; raises like `publish`."""
        ...

    def ping(self) -> None:
        """Raises `QueueUnreachable` within about two seconds."""
        ...


@dataclass(frozen=True, slots=True)
class Stores:
    """Every store that runs are made of."""

    definitions: DefinitionStore
    profiles: ProfileStore
    plans: PlanStore
    runs: RunStore
    logs: LogStore
    metrics: MetricStore
    spans: SpanStore
    artifacts: ArtifactStore
    nodes: NodeStore
    reservations: ReservationStore
    labels: LabelStore
    checkpoints: CheckpointStore
    loads: LoadStore
    leases: LeaseStore
