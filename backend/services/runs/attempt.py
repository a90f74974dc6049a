"""One try at a run, held by a lease: what an agent reports of it."""

from collections.abc import Sequence
from contextlib import suppress
from math import inf, isfinite
from pathlib import Path

from backend.errors import StageflowError
from backend.notifications.notifier import Notifier
from backend.profiles.profile import Profile
from backend.runs.attempts.checkpoints import Checkpoint, CheckpointFile, Mark
from backend.runs.attempts.fence import Fence
from backend.runs.dispatch.placement import Share
from backend.runs.events import Metrics
from backend.runs.history.notices import HUNG
from backend.runs.history.records import LogText, SpanBatch, StoredArtifact, TimelineKind
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run, RunError, RunProgress, RunSummary
from backend.runs.states import RunState
from backend.sandbox_level import SandboxLevel
from backend.services.runs.predicted import predicted_batches
from backend.services.runs.recovery import goes_on_by_itself
from backend.services.runs.returning import is_outgrown
from backend.services.runs.stores import Stores
from backend.storage.use import Points


class Attempt:
    """Made by `DispatchService.claim`. Every method raises `LeaseLost`, and changes nothing,
    once the run was given up, taken over or ended. `lease` in seconds."""

    def __init__(
        self,
        run: Run,
        token: str,
        stores: Stores,
        notifier: Notifier,
        lease: float,
        shares: tuple[Share, ...] = (),
    ) -> None:
        self.run = run
        self.shares = shares
        """Which ranks run on which devices of which nodes, that of rank 0 first."""
        self.number = run.attempt
        self.fence = Fence(run.id, run.attempt, token)
        self._stores = stores
        self._notifier = notifier
        self._lease = lease

    def beat(self) -> bool:
        """Renew the lease; True where somebody asked to cancel."""
        return self._stores.runs.beat(self.fence, self._lease)

    def summon(self, address: str, port: int, secret: str) -> None:
        """Tell the reserved nodes where their ranks' lines are taken."""
        self._stores.reservations.summon(self.fence, address, port, secret)

    def running(self) -> None:
        """The ranks do their work now."""
        self._stores.runs.begin(self.fence)

    def isolated(self, level: SandboxLevel) -> None:
        """The ranks are started in a sandbox of this level."""
        self._stores.runs.isolated(self.fence, level)

    def progress(self, progress: RunProgress) -> None:
        self._stores.runs.progress(self.fence, progress)

    def use(self, points: Points) -> None:
        """What the ranks use, as `UseHistory` gives it."""
        self._stores.use.keep_of_run(self.fence, points)

    def logs(self, lines: Sequence[LogText], batch: int = 0) -> None:
        """Add (rank or None for the agent, Unix seconds, text) lines. `batch` is the number of
        the write, from 1: one whose answer was lost may be made again. So for what follows."""
        if lines:
            self._stores.logs.add(self.fence, lines, batch)

    def metrics(self, metrics: Metrics, batch: int = 0) -> None:
        self._stores.metrics.add(self.fence, metrics, batch)

    def spans(
        self,
        kind: TimelineKind,
        rank: int,
        segment: int,
        arrow: bytes,
        num_spans: int,
        batch: int = 0,
    ) -> None:
        """Add spans of one rank and segment, as `backend.pipeline.columns.encode` gives them."""
        spans = SpanBatch(kind, rank, segment, arrow, num_spans)
        self._stores.spans.add(self.fence, [spans], batch)

    @property
    def spent(self) -> float:
        """Seconds that the attempts before this one took."""
        return sum(
            (each.finished_at - each.started_at).total_seconds()
            for each in self._stores.runs.attempts(self.run.id)
            if each.finished_at is not None
        )

    def beginnings(self) -> Sequence[Checkpoint]:
        """The checkpoints from which this attempt may go on, the best first."""
        return self._stores.checkpoints.beginnings(self.run)

    def resumed(self, checkpoint: Checkpoint) -> None:
        """The attempt goes on from there: what was measured later will be measured again."""
        step = checkpoint.mark.step
        self._stores.runs.resumed(self.fence, step)
        self._stores.metrics.forget(self.fence, step if self._counts_alike(checkpoint) else 0)

    def watched(self) -> tuple[float, ...]:
        """What was told so far of the metric by which evaluations are better or worse."""
        spec = self.run.spec
        if not isinstance(spec, TrainSpec) or not (spec.stop.patience or spec.checkpoints.best):
            return ()
        points = self._stores.metrics.list(self.run.id, spec.stop.metric)
        return tuple(point.value for point in points if isfinite(point.value))

    def is_cut_alike(self, checkpoint: Checkpoint) -> bool:
        """Did an attempt at this run by this very plan leave the checkpoint?"""
        spec = self._stores.runs.get(self.run.id).spec
        attempts = self._stores.runs.attempts(self.run.id)
        by = {attempt.number: attempt.plan for attempt in attempts}
        if checkpoint.run_id != self.run.id or not isinstance(spec, TrainSpec):
            return False
        plans = [by.get(number) or spec.plan for number in (checkpoint.attempt, self.number)]
        return plans[0] == plans[1]

    def begun_anew(self) -> None:
        """The attempt starts from the beginning: earlier measurements will be made again."""
        if self.number > 1:
            self._stores.metrics.forget(self.fence, 0)

    def checkpoint_folder(self, step: int) -> Path:
        """Where the files of this attempt's checkpoint after `step` updates belong."""
        return self._stores.checkpoints.folder(self.run.id, self.number, step)

    def checkpoint(
        self, mark: Mark, files: Sequence[CheckpointFile], keep: int, batch: int = 0
    ) -> None:
        """Commit a checkpoint: all its files are in their folder; the newest `keep` stay."""
        self._stores.checkpoints.add(self.fence, mark, files, keep, batch)

    def predict(self, segment: int, num_microbatches: int) -> bool:
        """Keep the predicted timeline of a segment, beside which the measured one is drawn.
        False where the run names no stored plan to predict from. Raises `InvalidInput`."""
        batches = predicted_batches(self._stores, self.run.asked, segment, num_microbatches)
        if batches:
            self._stores.spans.add(self.fence, batches)
        return bool(batches)

    def artifact(
        self, name: str, path: Path | str, batch: int = 0, most: float = inf
    ) -> StoredArtifact:
        """Keep a copy of a file of at most so many bytes with the run."""
        return self._stores.artifacts.add(self.fence, name, Path(path), batch, most)

    def profile(self, profile: Profile, batch: int = 0) -> int:
        """Keep what the run measured; the profile's id."""
        return self._stores.profiles.add_measured(self.fence, profile, batch)

    def is_outgrown(self) -> bool:
        """Does it go on by a plan for fewer nodes, and is the run's own better again?"""
        return is_outgrown(self.run, self._stores)

    def written(self) -> int:
        """The number of the newest write that was made."""
        return self._stores.runs.written(self.fence)

    def finish(self, state: RunState, summary: RunSummary, error: RunError | None = None) -> None:
        """The attempt is over, and with it the run in that final state, unless another attempt
        follows (`goes_on_by_itself`). Raises `IllegalMove`."""
        if state is RunState.FAILED and self._may_restart(error):
            state = RunState.QUEUED
        self._stores.runs.finish(self.fence, state, summary, error)
        if state is RunState.QUEUED:
            if error is not None and error.kind == HUNG:
                self._notifier.stalled(self.run, error)
            return
        with suppress(StageflowError):  # the run has ended, whether or not anybody is told
            self._notifier.notify(self._stores.runs.get(self.run.id))

    def _counts_alike(self, checkpoint: Checkpoint) -> bool:
        """Does the run that left the checkpoint count its updates as this one does?"""
        if checkpoint.run_id == self.run.id:
            return True
        before, now = self._stores.runs.get(checkpoint.run_id).spec, self.run.spec
        return (
            isinstance(before, TrainSpec) and isinstance(now, TrainSpec) and before.plan == now.plan
        )

    def _may_restart(self, error: RunError | None) -> bool:
        return goes_on_by_itself(self._stores.runs.get(self.run.id), error, self._stores)
