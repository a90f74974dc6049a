"""What becomes of a run whose attempt is over: another one by itself, or a new run on request."""

from dataclasses import replace

from backend.errors import InvalidInput, StageflowError
from backend.notifications.notifier import Notifier
from backend.planning.plan import Plan
from backend.runs.attempts.checkpoints import Checkpoint, may_restart
from backend.runs.request.groups import with_decay_as_before
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run, RunError
from backend.runs.states import RunState
from backend.services.runs.stores import Stores

AGENT_LOST = RunError(
    "AgentLost",
    "the node agent did not renew its lease",
    "Check the agent's machine, start the agent (`stageflow up`) and launch the run again.",
)


class NothingToResume(StageflowError):
    """A run that left no checkpoint was to be resumed."""


def goes_on_by_itself(run: Run, error: RunError | None, stores: Stores) -> bool:
    """Does another attempt follow the present one, which this error ends?"""
    return may_restart(run, error, stores.checkpoints.newest(run), stores.runs.attempts(run.id))


def give_up(run: Run, stores: Stores, notifier: Notifier, at_once: bool = False) -> bool:
    """End the attempt of a lost agent: the run is queued again where it can go on by itself,
    and fails otherwise. False where somebody else did it."""
    state = RunState.QUEUED if goes_on_by_itself(run, AGENT_LOST, stores) else RunState.FAILED
    given_up = stores.runs.give_up(run, state, AGENT_LOST, at_once)
    if given_up and state is RunState.FAILED:
        notifier.notify(stores.runs.get(run.id))
    return given_up


def resumption(
    run: Run,
    stores: Stores,
    plan_id: int | None,
    epochs: int,
    plan: Plan | None,
    best: bool,
    learning_rate: float | None = None,
) -> tuple[TrainSpec, Checkpoint]:
    """What a run that goes on with an ended one is asked for, and where it begins; see
    `RunService.resume`. Raises `NothingToResume`, `InvalidInput` and `NotFound`."""
    known = stores.checkpoints.beginnings(run)
    first = next((found for found in known if found.mark.best or not best), None)
    if first is None or not isinstance(run.spec, TrainSpec):
        which = "checkpoint of its best evaluation" if best else "checkpoint"
        raise NothingToResume(f"run {run.id} has no {which}", "Launch it again instead.")
    if first.mark.epoch >= (epochs or run.spec.epochs):
        raise InvalidInput(
            f"run {run.id} has trained {first.mark.epoch} epochs",
            f"Give more epochs in all, such as {2 * first.mark.epoch}.",
        )
    stop = run.spec.stop
    if 0 < stop.updates <= first.mark.step:
        if not epochs:
            raise InvalidInput(
                f"run {run.id} has made the {stop.updates} updates that it was to make at most",
                "Give epochs in all, which hold in place of that.",
            )
        stop = replace(stop, updates=0)
    rule = with_decay_as_before(run.spec.optimizer)
    if learning_rate is not None:
        rule = replace(rule, learning_rate=learning_rate)
    spec = replace(
        run.spec,
        checkpoint_id=first.id,
        epochs=epochs or run.spec.epochs,
        optimizer=rule,
        stop=stop,
    )
    if plan_id is not None:
        plan = stores.plans.get(plan_id).prediction.plan
    return (spec if plan is None else replace(spec, plan=plan, plan_id=plan_id)), first
