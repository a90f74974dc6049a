"""One try at a run, held by a lease: what an agent reports of it."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from backend.errors import StageflowError
from backend.profiles.profile import Profile
from backend.runs.events import Metrics
from backend.runs.fence import Fence
from backend.runs.ports import Bell, LogText, Stores
from backend.runs.predicted import predicted_batches
from backend.runs.records import SpanBatch, StoredArtifact, TimelineKind
from backend.runs.run import Run, RunError, RunProgress, RunSummary
from backend.runs.states import RunState
from backend.sandbox_level import SandboxLevel


class Attempt:
    """Gotten from `RunService.claim`. Every method raises `LeaseLost`, and changes nothing,
    once the run was given up, taken over or ended. `lease` in seconds."""

    def __init__(self, run: Run, token: str, stores: Stores, bell: Bell, lease: float) -> None:
        self.run = run
        self.number = run.attempt
        self._fence = Fence(run.id, run.attempt, token)
        self._stores = stores
        self._bell = bell
        self._lease = lease

    def beat(self) -> bool:
        """Renew the lease; True where somebody asked to cancel."""
        return self._stores.runs.beat(self._fence, self._lease)

    def running(self) -> None:
        """The ranks do their work now."""
        self._stores.runs.begin(self._fence)

    def isolated(self, level: SandboxLevel) -> None:
        """The ranks are started in a sandbox of this level."""
        self._stores.runs.isolated(self._fence, level)

    def progress(self, progress: RunProgress) -> None:
        self._stores.runs.progress(self._fence, progress)

    def logs(self, lines: Sequence[LogText]) -> None:
        """Add (rank or None for the agent, Unix seconds, text) lines."""
        if lines:
            self._stores.logs.add(self._fence, lines)

    def metrics(self, metrics: Metrics) -> None:
        self._stores.metrics.add(self._fence, metrics)

    def spans(
        self, kind: TimelineKind, rank: int, segment: int, arrow: bytes, num_spans: int
    ) -> None:
        """Add spans of one rank and segment, as `backend.pipeline.columns.encode` gives them."""
        batch = SpanBatch(kind, rank, segment, arrow, num_spans)
        self._stores.spans.add(self._fence, [batch])

    def predict(self, segment: int, num_microbatches: int) -> bool:
        """Keep the predicted timeline of a segment, beside which the measured one is drawn.
        False where the run names no stored plan to predict from. Raises `InvalidInput`."""
        batches = predicted_batches(self._stores, self.run.spec, segment, num_microbatches)
        if batches:
            self._stores.spans.add(self._fence, batches)
        return bool(batches)

    def artifact(self, name: str, path: Path | str) -> StoredArtifact:
        """Keep a copy of a file with the run."""
        return self._stores.artifacts.add(self._fence, name, Path(path))

    def profile(self, profile: Profile) -> int:
        """Keep what the run measured; the profile's id."""
        return self._stores.profiles.add_measured(self._fence, profile)

    def finish(self, state: RunState, summary: RunSummary, error: RunError | None = None) -> None:
        """End the run in a final state; the attempt is over. Raises `IllegalMove`."""
        self._stores.runs.finish(self._fence, state, summary, error)
        with suppress(StageflowError):  # it has ended, whoever hears of it
            self._bell.ring(self._stores.runs.get(self.run.id))
