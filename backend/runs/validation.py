"""What must hold before a run is stored."""

from math import isfinite

from backend.errors import InvalidInput
from backend.pipeline.schedules.catalog import executable_schedules, training_schedules
from backend.prediction.predict import check_plan
from backend.runs.ports import Stores
from backend.runs.spec import ProfileSpec, RunSpec, TrainSpec

DATA_SETS = ("", "digits", "synthetic", "definition")


def validate(spec: RunSpec, stores: Stores) -> None:
    """Raises `NotFound` on an id that leads nowhere, `InvalidInput` on a value out of range."""
    stores.definitions.get(spec.definition_id)
    match spec:
        case ProfileSpec():
            _at_least_one("microbatch", spec.microbatch)
            _at_least_one("repetitions", spec.repetitions)
        case TrainSpec():
            _validate_training(spec)
            _validate_plan(spec, stores)


def _validate_training(spec: TrainSpec) -> None:
    _at_least_one("epochs", spec.epochs)
    _at_least_one("samples", spec.data.samples)
    if not (isfinite(spec.optimizer.learning_rate) and spec.optimizer.learning_rate > 0):
        raise InvalidInput(
            f"learning rate {spec.optimizer.learning_rate:g} is not above 0", "Try 0.01."
        )
    if not 0 <= spec.optimizer.momentum < 1:
        raise InvalidInput(f"momentum {spec.optimizer.momentum:g} is not in 0 up to 1", "Try 0.9.")
    if spec.target_accuracy is not None and not 0 < spec.target_accuracy <= 1:
        raise InvalidInput(
            f"target accuracy {spec.target_accuracy:g} is not above 0 and at most 1",
            "0.95 means 95 % of the held-out samples.",
        )
    if spec.data.name not in DATA_SETS:
        raise InvalidInput(
            f"no data set {spec.data.name!r}", f"There are {', '.join(DATA_SETS[1:])}."
        )


def _validate_plan(spec: TrainSpec, stores: Stores) -> None:
    _at_least_one("microbatch", spec.plan.microbatch)
    _at_least_one("batch", spec.plan.batch)
    names = [schedule.name for schedule in training_schedules()]
    if spec.plan.schedule not in names:
        raise InvalidInput(
            f"no schedule {spec.plan.schedule!r} that trains", f"There are {', '.join(names)}."
        )
    runs = [schedule.name for schedule in executable_schedules()]
    if spec.plan.schedule not in runs:
        raise InvalidInput(
            f"schedule {spec.plan.schedule!r} can be planned and simulated, but not run yet",
            f"Make a plan with one of: {', '.join(runs)}.",
        )
    if spec.plan.lanes > 1 or spec.plan.recompute or spec.plan.partition.chunks > 1:
        raise InvalidInput(
            f"the plan has {spec.plan.lanes} lanes, {spec.plan.partition.chunks} chunks and "
            f"recomputation {'on' if spec.plan.recompute else 'off'}; this cannot be run yet",
            "Make a plan with one lane, one chunk and no recomputation.",
        )
    if spec.plan_id is None:
        return
    stored = stores.plans.get(spec.plan_id)
    profile = stores.profiles.get(stored.profile_id)
    if profile.definition_id != spec.definition_id:
        raise InvalidInput(
            f"plan {spec.plan_id} was made for definition {profile.definition_id}, "
            f"not for {spec.definition_id}",
            "Profile and plan this definition first.",
        )
    check_plan(profile.profile, stored.cluster, spec.plan)


def _at_least_one(name: str, value: int) -> None:
    if value < 1:
        raise InvalidInput(f"{name} is {value}", f"Give {name} 1 or more.")
