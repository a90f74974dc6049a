"""Runs: asked for, found, watched, cancelled, gone on with, and taken away."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from backend.comparison.last_run import LastRun
from backend.comparison.shared_cores import Expectation
from backend.comparison.stragglers import Paces
from backend.comparison.to_target import Histories, Target
from backend.errors import InvalidInput, StageflowError
from backend.notifications.notifier import Notifier
from backend.people.rights import Right
from backend.planning.plan import Plan
from backend.queue.client import CeleryQueue
from backend.queue.messages import QueueUnreachable
from backend.runs.dispatch.placement import shares
from backend.runs.dispatch.turns import Until
from backend.runs.history.labels import MAX_NAME
from backend.runs.history.listing import RunFilter, RunOrder, RunPage
from backend.runs.history.records import StoredAttempt
from backend.runs.request.groups import with_decay_as_before
from backend.runs.request.spec import RunSpec, TrainSpec
from backend.runs.run import Run
from backend.runs.states import RunState
from backend.services.people.access import Access
from backend.services.runs.completion import completed
from backend.services.runs.last_runs import beside_last_of
from backend.services.runs.line import Line, expected_free, in_line
from backend.services.runs.paces import paces_of
from backend.services.runs.pools import of_each, why_pooled
from backend.services.runs.predicted import expected
from backend.services.runs.recovery import resumption
from backend.services.runs.stand_in import away, placed
from backend.services.runs.stores import Stores
from backend.services.runs.survival import foreseen, prospect
from backend.services.runs.to_target import learnt_of
from backend.services.runs.validation import validate
from backend.services.runs.watched import in_vain
from backend.storage.nodes.holdings import Taken
from backend.storage.runs.runs import SqlRuns


class NotEnded(StageflowError):
    """Something that is for ended runs alone was asked of one that is not."""


class NotLive(StageflowError):
    """Something that is for processes alone was asked of a run that has none."""

    advice = "Its log has what its ranks printed."


class RunService:
    """`listed` shows the chosen project's runs, `stores` all that the actor sees. What
    a run leaves behind is read from its stores. `node` is woken where no agent is alive; whoever
    acts owns what is submitted."""

    def __init__(
        self,
        stores: Stores,
        listed: SqlRuns,
        queue: CeleryQueue,
        notifier: Notifier,
        node: str,
        access: Access,
    ) -> None:
        self._stores = stores
        self.logs, self.metrics, self.spans = stores.logs, stores.metrics, stores.spans
        self.artifacts, self.checkpoints = stores.artifacts, stores.checkpoints
        self.nodes, self.loads = stores.nodes, stores.loads
        self._listed = listed
        self._queue = queue
        self._notifier = notifier
        self._node = node
        self._access = access

    def submit(self, spec: RunSpec, name: str = "", origin: int | None = None) -> Run:
        """Store a queued run and wake a node; `origin` is the run that it is made from. A queue
        that does not answer leaves it queued: see `why_waiting`. Raises `InvalidInput` or
        `NotFound` on a faulty spec."""
        spec = self.checked(spec)
        if origin is not None:
            self._stores.runs.get(origin)
        definition = self._stores.definitions.get(spec.definition_id)
        title = name.strip()[:MAX_NAME] or f"{definition.name} {spec.kind}"
        self._access.require(Right.EDIT, "launch", title, definition.project_id)
        planned = foreseen(spec, self._stores)
        run = self._stores.runs.add(title, spec, self._access.actor.name, origin, planned)
        self.begin(run.id, spec)
        return run

    def begin(self, run_id: int, spec: RunSpec) -> None:
        """What a run gets that was just stored: its trackers, and the attention of a node."""
        if isinstance(spec, TrainSpec):
            self._stores.followed.begin(run_id, self._stores.tracking.chosen(spec.trackers))
        if spec.pool is None:
            with suppress(QueueUnreachable):
                self._queue.publish(run_id, self._woken(spec))

    def checked(self, spec: RunSpec) -> RunSpec:
        """As it would be stored, with what its plan's profile says. Raises as `submit`."""
        spec = completed(spec, self._stores)
        validate(spec, self._stores)
        return spec

    def retry(self, run_id: int) -> Run:
        """The same again, as a new run: an ended one stays what it is. Raises `NotFound`, and
        `NotEnded` where the run may still succeed."""
        run = self._ended(run_id)
        spec = run.asked
        if isinstance(spec, TrainSpec):
            spec = replace(spec, optimizer=with_decay_as_before(spec.optimizer))
        return self.submit(spec, run.name, origin=run_id)

    def delete(self, run_id: int) -> Run:
        """Take an ended run away for good, with its log, metrics, timelines and files; what it
        was. A profile that it measured stays. Raises `NotFound` and `NotEnded`."""
        self._require("delete", run_id)
        run = self._ended(run_id)
        files = [artifact.sha256 for artifact in self.artifacts.list(run_id)]
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
        line = self.line()
        if run.spec.pool is not None:
            return line.held_up.get(run.id) or self.why_pooled([run])[run.id]
        return self.why_stopped() or line.held_up.get(run.id) or self.why_apart(run)

    def why_pooled(self, runs: Sequence[Run]) -> Mapping[int, str]:
        """What each of these queued runs, which pools carry, waits for."""
        pools = {pool.name: pool for pool in self._stores.pools.list()} if runs else {}
        jobs = of_each(self._stores.jobs.of_runs([run.id for run in runs]))
        asked = {run.id: run.spec.pool.name for run in runs if run.spec.pool}
        return {
            run.id: why_pooled(run, pools.get(asked[run.id]), jobs.get(run.id, ())) for run in runs
        }

    def why_stopped(self) -> str | None:
        """Why no queued run starts at all."""
        try:
            self._queue.ping()
        except QueueUnreachable as fault:
            return f"{fault}. The run is stored and starts when Redis answers. {fault.advice}"
        if not self._stores.nodes.alive():
            return "No node agent is alive. The run is stored and starts with one: `stageflow up`."
        return None

    def line(self) -> Line:
        """The queued runs of all projects, with what is in store for each."""
        return in_line(self._stores)

    def held(self) -> Taken:
        """The devices that live runs hold, whoever may see those."""
        return self._stores.holdings.taken()

    def expected_free(self, taken: Taken) -> Until:
        """In how many seconds each of them is expected to be free."""
        return expected_free(self._stores, taken)

    def why_apart(self, run: Run) -> str | None:
        """Why a queued run's nodes are not there together; None where they are, or it names
        none."""
        if not isinstance(run.spec, TrainSpec) or not run.spec.nodes:
            return None
        try:
            shares(placed(run, self._stores), self._stores.nodes.alive())
        except InvalidInput as fault:
            reason = f"The run waits for its nodes: {away(run, self._stores) or fault}."
            return reason + prospect(run, self._stores.nodes.list())
        return None

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

    def show_stacks(self, run_id: int) -> Run:
        """Let every rank of a live run write the stacks of its threads into the run's log. Raises
        `NotFound` and `NotLive`."""
        self._require("ask for stacks of", run_id)
        if not self._stores.runs.request_stacks(run_id):
            state = self._stores.runs.get(run_id).state.value
            raise NotLive(f"run {run_id} is {state}: no process of it runs")
        return self._stores.runs.get(run_id)

    def expected(self, run: Run) -> Expectation:
        """What is laid beside the run's measurement."""
        return expected(self._stores, run)

    def paces(self, run: Run) -> Paces | None:
        """What its ranks computed beside their plan; None while there is too little of it."""
        return paces_of(self._stores, run)

    def learnt(self, definition_id: int, target: Target) -> Histories:
        """What trainings of a definition took to the target, by update rule."""
        return learnt_of(self._stores, definition_id, target)

    def watched_in_vain(self, run: Run) -> str | None:
        """That evaluations do not tell the metric that it watches, in sentences for people."""
        return in_vain(self._stores, run)

    def beside_last(self, run: Run) -> LastRun | None:
        """The run beside the last one that did the same and succeeded; None where none has."""
        return beside_last_of(self._stores, run)

    def attempts(self, run_id: int) -> Sequence[StoredAttempt]:
        """The attempts at a run with their ends, the first one first."""
        return self._stores.runs.attempts(run_id)

    def resume(
        self,
        run_id: int,
        plan_id: int | None = None,
        epochs: int = 0,
        plan: Plan | None = None,
        best: bool = False,
        learning_rate: float | None = None,
    ) -> Run:
        """A new run that goes on from the newest checkpoint of an ended one (or from that of its
        `best` evaluation), on the same plan, or on a saved or given one, up to so many `epochs` in
        all (0 = as many as before). A rate that falls goes on where it would be, had these epochs
        and this `learning_rate` (None = as before) been asked for at first. Raises `NotFound`,
        `NotEnded`, and `NothingToResume`."""
        found = self._stores.runs.get(run_id)
        self._access.check(Right.EDIT, "resume", f"run {run_id}", found.project_id)
        run = self._ended(run_id)
        spec, first = resumption(run, self._stores, plan_id, epochs, plan, best, learning_rate)
        resumed = self.submit(spec, run.name, origin=run_id)
        if isinstance(run.spec, TrainSpec) and spec.plan == run.spec.plan:
            self._stores.metrics.copy(run_id, resumed.id, first.mark.step)
        return resumed

    def _woken(self, spec: RunSpec) -> str:
        """The node that leads the run, else the freshest one."""
        if found := shares(spec, self._stores.nodes.list()):
            return found[0].node
        alive = self._stores.nodes.alive()
        return alive[0].name if alive else self._node
