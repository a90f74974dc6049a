"""Runs: asked for, found, watched, cancelled, gone on with, and taken away."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from backend.errors import InvalidInput, NotFound, StageflowError
from backend.people.audit import Access
from backend.people.rights import Right
from backend.pipeline.columns import decode
from backend.pipeline.timeline import Timeline
from backend.planning.plan import Plan
from backend.runs.attempts.attempts import StoredAttempt
from backend.runs.attempts.checkpoints import Checkpoint
from backend.runs.attempts.recovery import resumption
from backend.runs.dispatch.fairness import LOOKED_AT, in_turn, over_quota
from backend.runs.dispatch.nodes import Node
from backend.runs.dispatch.placement import shares
from backend.runs.dispatch.stand_in import away, placed
from backend.runs.history.labels import MAX_NAME
from backend.runs.history.listing import RunFilter, RunOrder, RunPage
from backend.runs.history.records import (
    LogLine,
    MetricPoint,
    SpanBatch,
    StoredArtifact,
    TimelineKind,
)
from backend.runs.ports import Notifier, Queue, QueueUnreachable, RunStore, Stores
from backend.runs.request.completion import completed
from backend.runs.request.spec import RunSpec, TrainSpec
from backend.runs.request.validation import validate
from backend.runs.run import Run
from backend.runs.states import RunState


class NotEnded(StageflowError):
    """Something that is for ended runs alone was asked of one that is not."""


class RunService:
    """`listed` shows the chosen project's runs, `stores` all that the actor sees. `node` is woken
    where no agent is alive; `lease` in seconds; whoever acts owns what is submitted."""

    def __init__(
        self,
        stores: Stores,
        listed: RunStore,
        queue: Queue,
        notifier: Notifier,
        node: str,
        lease: float,
        access: Access,
    ) -> None:
        self._stores = stores
        self._listed = listed
        self._queue = queue
        self._notifier = notifier
        self._node = node
        self._lease = lease
        self._access = access

    def submit(self, spec: RunSpec, name: str = "", origin: int | None = None) -> Run:
        """Store a queued run and wake a node; `origin` is the run that it is made from. A queue
        that does not answer leaves it queued: see `why_waiting`. Raises `InvalidInput` or
        `NotFound` on a faulty spec."""
        spec = completed(spec, self._stores)
        validate(spec, self._stores)
        if origin is not None:
            self._stores.runs.get(origin)
        title = name.strip()[:MAX_NAME] or self._name(spec)
        project = self._stores.definitions.get(spec.definition_id).project_id
        self._access.require(Right.EDIT, "launch", title, project)
        run = self._stores.runs.add(title, spec, self._access.actor.name, origin)
        with suppress(QueueUnreachable):
            self._queue.publish(run.id, self._leader(spec) or self._freshest_node())
        return run

    def retry(self, run_id: int) -> Run:
        """The same again, as a new run: an ended one stays what it is. Raises `NotFound`, and
        `NotEnded` where the run may still succeed."""
        run = self._ended(run_id)
        return self.submit(run.spec, run.name, origin=run_id)

    def delete(self, run_id: int) -> Run:
        """Take an ended run away for good, with its log, metrics, timelines and files; what it
        was. A profile that it measured stays. Raises `NotFound` and `NotEnded`."""
        self._require("delete", run_id)
        run = self._ended(run_id)
        files = [artifact.sha256 for artifact in self.artifacts(run_id)]
        if not self._stores.runs.delete(run_id):
            return self._ended(run_id)  # somebody was faster: it is gone, or works again
        self._stores.artifacts.prune(files)
        self._stores.checkpoints.forget(run_id)
        return run

    def _require(self, action: str, run_id: int) -> None:
        project = self._stores.runs.get(run_id).project_id
        self._access.require(Right.EDIT, action, f"run {run_id}", project)

    def _ended(self, run_id: int) -> Run:
        run = self._stores.runs.get(run_id)
        if not run.state.is_final:
            raise NotEnded(
                f"run {run_id} is {run.state.value}", "Cancel it first, or wait for its end."
            )
        return run

    def why_waiting(self, run: Run) -> str | None:
        """Why a queued run does not start yet, in a sentence for people, with what to do;
        None where it is not queued or only waits for its turn."""
        if run.state is not RunState.QUEUED:
            return None
        return self.why_stopped() or self.line().get(run.id) or self.why_apart(run)

    def why_stopped(self) -> str | None:
        """Why no queued run starts at all."""
        try:
            self._queue.ping()
        except QueueUnreachable as fault:
            return f"{fault}. The run is stored and starts when it is back. {fault.advice}"
        if not self._alive():
            return (
                "No node agent is alive. The run is stored and starts when one is: `stageflow up`."
            )
        return None

    def line(self) -> Mapping[int, str | None]:
        """Queued runs of all projects in the order in which free nodes take them, then those
        whose project has as much as it may have at once, with that reason."""
        waiting = self._stores.loads.waiting(LOOKED_AT)
        loads = self._stores.loads.loads()
        smallest = min((max(1, len(node.devices)) for node in self._alive()), default=1)
        turns: dict[int, str | None] = {each.run_id: None for each in in_turn(waiting, loads)}
        held_up = {each.run_id: over_quota(loads[each.project_id], smallest) for each in waiting}
        return turns | held_up

    def busy(self) -> Mapping[str, int]:
        """The nodes that live runs hold, with the run's number, whoever sees it."""
        return self._stores.loads.busy()

    def why_apart(self, run: Run) -> str | None:
        """Why a queued run's nodes are not there together; None where they are, or it names
        none."""
        if not isinstance(run.spec, TrainSpec) or not run.spec.nodes:
            return None
        try:
            spec = placed(run, self._stores, self._lease)
            needed = [share.node for share in shares(spec, self._alive())]
        except InvalidInput as fault:
            return f"It waits for its nodes: {away(run, self._stores, self._lease) or fault}."
        held = dict(self._stores.reservations.held())
        busy = [f"{node} by run {held[node]}" for node in needed if node in held]
        return f"It needs {', '.join(needed)} at once; held: {', '.join(busy)}." if busy else None

    def get(self, run_id: int) -> Run:
        """Raises `NotFound`."""
        return self._stores.runs.get(run_id)

    def several(self, run_ids: Sequence[int]) -> Sequence[Run]:
        """Those of these runs that there are, in the order of the ids."""
        return self._stores.runs.several(run_ids)

    def list(
        self,
        wanted: RunFilter | None = None,
        limit: int = 100,
        offset: int = 0,
        order: RunOrder | None = None,
    ) -> RunPage:
        """The runs that meet the filter; the newest first unless `order` says otherwise."""
        return self._listed.page(wanted or RunFilter(), order or RunOrder(), limit, offset)

    def count(self) -> Mapping[RunState, int]:
        """How many runs there are in each state that some run has."""
        return self._listed.count()

    def cancel(self, run_id: int) -> Run:
        """A queued run is cancelled at once; a live one is asked to end; a final one stays
        what it is. Raises `NotFound`."""
        self._require("cancel", run_id)
        ended = self._stores.runs.cancel_queued(run_id)
        if not ended:
            self._stores.runs.request_cancel(run_id)
        run = self._stores.runs.get(run_id)
        if ended:
            self._notifier.notify(run)
        return run

    def logs(self, run_id: int, after: int = 0, limit: int = 1000) -> Sequence[LogLine]:
        """Up to `limit` lines behind sequence number `after`."""
        return self._stores.logs.list(run_id, after, limit)

    def all_logs(self, run_id: int, after: int = 0) -> Iterator[LogLine]:
        """Every line behind sequence number `after`, read in portions."""
        while lines := self.logs(run_id, after):
            yield from lines
            after = lines[-1].seq

    def metrics(self, run_id: int, name: str) -> Sequence[MetricPoint]:
        """One metric ("loss", "accuracy", ...) by step."""
        return self._stores.metrics.list(run_id, name)

    def curve(self, run_id: int, name: str, num_points: int = 1000) -> Sequence[MetricPoint]:
        """One metric by step; above `num_points` points each is the mean of neighbours."""
        return self._stores.metrics.curve(run_id, name, num_points)

    def last_metrics(self, run_id: int, name: str, count: int = 1) -> Sequence[MetricPoint]:
        """The newest `count` points of one metric, by step."""
        return self._stores.metrics.last(run_id, name, count)

    def epoch_means(self, run_id: int, name: str, count: int = 1) -> Sequence[float]:
        """One metric's mean over each of its newest `count` epochs, in order. Values that
        were not finite count for nothing."""
        return self._stores.metrics.epoch_means(run_id, name, count)

    def metric_names(self, run_id: int) -> Sequence[str]:
        return self._stores.metrics.names(run_id)

    def timeline(
        self, run_id: int, kind: TimelineKind, segment: int | None = None
    ) -> Timeline | None:
        """The spans of one segment (None = the last one); None where there are none."""
        if segment is None:
            segment = max(self.segments(run_id, kind), default=0)
        batches = self.span_batches(run_id, kind, segment)
        found = Timeline.joined([decode(batch.data) for batch in batches])
        return found if len(found) else None

    def span_batches(self, run_id: int, kind: TimelineKind, segment: int) -> Sequence[SpanBatch]:
        """The same still encoded, by rank: for segments of very many spans."""
        return self._stores.spans.list(run_id, kind, segment)

    def segments(self, run_id: int, kind: TimelineKind = "measured") -> Sequence[int]:
        """The segments that have a timeline, ascending."""
        return self._stores.spans.segments(run_id, kind)

    def artifacts(self, run_id: int) -> Sequence[StoredArtifact]:
        """The files kept with the run, by name."""
        return self._stores.artifacts.list(run_id)

    def artifact_path(self, run_id: int, name: str) -> Path:
        """Where one kept file lies. Raises `NotFound`."""
        for artifact in self.artifacts(run_id):
            if artifact.name == name:
                return artifact.path
        raise NotFound(f"run {run_id} has no file {name!r}")

    def attempts(self, run_id: int) -> Sequence[StoredAttempt]:
        """The attempts at a run with their ends, the first one first."""
        return self._stores.runs.attempts(run_id)

    def checkpoints(self, run_id: int) -> Sequence[Checkpoint]:
        """What a run can be resumed from, the newest first."""
        return self._stores.checkpoints.list(run_id)

    def resume(
        self, run_id: int, plan_id: int | None = None, epochs: int = 0, plan: Plan | None = None
    ) -> Run:
        """A new run that goes on from the newest checkpoint of an ended one, on the same plan,
        or on a saved or given one, up to so many `epochs` in all (0 = as many as before). Raises
        `NotFound`, `NotEnded`, and `NothingToResume`."""
        found = self._stores.runs.get(run_id)
        self._access.check(Right.EDIT, "resume", f"run {run_id}", found.project_id)
        run = self._ended(run_id)
        spec, newest = resumption(run, self._stores, plan_id, epochs, plan)
        resumed = self.submit(spec, run.name, origin=run_id)
        if isinstance(run.spec, TrainSpec) and spec.plan == run.spec.plan:
            self._stores.metrics.copy(run_id, resumed.id, newest.mark.step)
        return resumed

    def alive(self) -> Sequence[str]:
        """The names of the nodes that are alive."""
        return [node.name for node in self._alive()]

    def _alive(self) -> Sequence[Node]:
        return [node for node in self._stores.nodes.list(self._lease) if node.alive]

    def _leader(self, spec: RunSpec) -> str:
        found = shares(spec, self._stores.nodes.list(self._lease))
        return found[0].node if found else ""

    def _freshest_node(self) -> str:
        alive = self._alive()
        return alive[0].name if alive else self._node

    def _name(self, spec: RunSpec) -> str:
        return f"{self._stores.definitions.get(spec.definition_id).name} {spec.kind}"
