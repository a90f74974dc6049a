"""What must hold before a run is stored."""

from math import inf, isfinite

from backend.cluster.cluster import Cluster
from backend.errors import InvalidInput
from backend.pipeline.schedules.catalog import schedule
from backend.planning.local_heads import headed
from backend.planning.memory import replica_parts
from backend.planning.room import check_memory
from backend.prediction.predict import check_plan
from backend.prediction.shapes import steady_shape
from backend.profiles.devices import peak
from backend.profiles.profile import Profile
from backend.profiles.what_if import at_microbatch, kept_in
from backend.runs.dispatch.placement import shares
from backend.runs.pools.pool import fewest_devices
from backend.runs.request.combinations import check_combinations
from backend.runs.request.spec import (
    CheckpointSpec,
    ProfileSpec,
    RunSpec,
    TrainSpec,
)
from backend.runs.request.stopping import check_stop, check_targets
from backend.services.runs.data_validation import validate_data
from backend.services.runs.stores import Stores


def validate(spec: RunSpec, stores: Stores) -> None:
    """Raises `NotFound` on an id that leads nowhere, `InvalidInput` on a value out of range."""
    stores.definitions.get(spec.definition_id)
    _validate_pool(spec, stores)
    match spec:
        case ProfileSpec():
            _at_least_one("microbatch", spec.microbatch)
            _at_least_one("repetitions", spec.repetitions)
            for size in spec.further:
                _at_least_one("microbatch", size)
            if spec.peak:
                peak(spec.peak, spec.precision)
        case TrainSpec():
            _validate_training(spec)
            _validate_weights(spec)
            _validate_emulation(spec)
            _validate_plan(spec, stores)
            _validate_nodes(spec, stores)
            stores.tracking.chosen(spec.trackers)


def _validate_training(spec: TrainSpec) -> None:
    _at_least_one("epochs", spec.epochs)
    _at_least_one("round", spec.round)
    _at_least_one("samples", spec.data.samples)
    _validate_checkpoints(spec.checkpoints)
    check_stop(spec.stop, spec.checkpoints.best)
    if spec.evaluate < 0:
        raise InvalidInput(
            f"an evaluation every {spec.evaluate} updates cannot be made",
            "Give a number above 0, or 0 for only the end of each epoch.",
        )
    check_targets(spec)
    validate_data(spec.data)


def _validate_weights(spec: TrainSpec) -> None:
    given = [spec.weights_id is not None, spec.weights_run is not None, bool(spec.weights_path)]
    if sum(given) > 1:
        raise InvalidInput(
            "weights to begin with come from several places", "Give one file, run or path."
        )
    if spec.weights_partial and not any(given):
        raise InvalidInput(
            "partial weights are allowed, and there are no weights to begin with",
            "Give a file, a run or a path, or leave that out.",
        )


def _validate_emulation(spec: TrainSpec) -> None:
    if not (isfinite(spec.emulate) and spec.emulate >= 0):
        raise InvalidInput(
            f"{spec.emulate:g} seconds for each profiled second is below 0 or not finite", "Try 1."
        )
    if spec.emulate and spec.plan_id is None:
        raise InvalidInput(
            "emulated devices need the times of a profile, and this plan has none",
            "Save the plan first and launch it by its number.",
        )
    if spec.emulate and spec.has_target:
        raise InvalidInput(
            "a run on emulated devices learns nothing and reaches no target",
            "Leave the target out.",
        )
    if spec.emulate and (any(spec.plan.codecs) or spec.plan.codec_of_sums):
        raise InvalidInput(
            "emulated devices do not take the seconds of coding messages and sums",
            "Emulate a plan without codecs, or train this one on real devices.",
        )
    if spec.emulate and spec.plan.splits:
        raise InvalidInput(
            "emulated devices do not take the seconds of split layers' exchanges",
            "Emulate a plan without split layers, or train this one on real devices.",
        )
    if spec.emulate and schedule(spec.plan.schedule).local:
        raise InvalidInput(
            f"schedule {spec.plan.schedule!r} has a head at every stage, and emulated devices have "
            "none",
            "Train on real devices, or emulate a plan of another schedule.",
        )


def _validate_nodes(spec: TrainSpec, stores: Stores) -> None:
    shares(spec, stores.nodes.list())
    if spec.emulate and spec.plan.is_apart:
        raise InvalidInput(
            "emulated devices do not take the seconds of exchanges between sites",
            "Emulate a plan for one site, or train this one on real devices.",
        )
    if spec.nodes and spec.emulate:
        raise InvalidInput(
            "emulated devices share one machine's clock", "Leave the nodes out: one is enough."
        )


def _validate_pool(spec: RunSpec, stores: Stores) -> None:
    asked = spec.pool
    if asked is None:
        return
    stores.pools.get(asked.name)
    if asked.nodes < 1 or asked.devices < 0 or not 0 <= asked.seconds < inf:
        raise InvalidInput(
            f"a job on {asked.nodes} machines with {asked.devices} devices each for "
            f"{asked.seconds:g} s cannot be made",
            "Give 1 machine or more, and numbers above 0, or 0 for what the run and pool need.",
        )
    needed = fewest_devices(spec)
    if asked.devices and asked.devices < needed:
        raise InvalidInput(
            f"the run needs {needed} devices of each of {asked.nodes} machines, "
            f"but is to have {asked.devices}",
            "Ask for more devices or machines, or leave the devices out.",
        )
    if isinstance(spec, ProfileSpec) and asked.nodes > 1:
        raise InvalidInput("one machine measures a profile", "Ask for one.")
    if isinstance(spec, TrainSpec) and spec.nodes:
        raise InvalidInput(
            "a run cannot have nodes and a pool, whose jobs choose machines", "Leave one of them."
        )
    if isinstance(spec, TrainSpec) and spec.emulate and asked.nodes > 1:
        raise InvalidInput("emulated devices share one machine's clock", "Ask for one machine.")


def _validate_checkpoints(spec: CheckpointSpec) -> None:
    _at_least_one("keep", spec.keep)
    if spec.updates < 0 or not 0 <= spec.seconds < inf:
        raise InvalidInput(
            f"checkpoints every {spec.updates} updates or {spec.seconds:g} s cannot be made",
            "Give numbers above 0, or 0 for none by that count.",
        )


def _validate_plan(spec: TrainSpec, stores: Stores) -> None:
    _at_least_one("microbatch", spec.plan.microbatch)
    _at_least_one("batch", spec.plan.batch)
    check_combinations(spec)
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
    _check_memory(spec, profile.profile, stored.cluster)


def _check_memory(spec: TrainSpec, profile: Profile, cluster: Cluster) -> None:
    """Raise `PlanDoesNotFit`: the plan may have been made for another optimizer, or for state in
    another precision."""
    kept = kept_in(at_microbatch(profile, spec.plan.microbatch), spec.state_precision)
    kept = headed(kept, spec.plan, spec.local_head)
    held = replica_parts(kept, spec.plan, steady_shape(spec.plan), spec.optimizer.planned)
    check_memory(held, cluster, spec.plan.partition)


def _at_least_one(name: str, value: int) -> None:
    if value < 1:
        raise InvalidInput(f"{name} is {value}", f"Give {name} 1 or more.")
