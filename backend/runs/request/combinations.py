"""What a training run cannot combine, refused before it is stored, with the reason."""

from math import lcm

from backend.errors import InvalidInput
from backend.pipeline.schedules.catalog import SCHEDULES, schedule
from backend.pipeline.schedules.custom import WITHOUT_RULE
from backend.pipeline.sound_order import check_order
from backend.planning.channels.checks import check_splits
from backend.planning.codec_of_sums import check_codec_of_sums
from backend.planning.message_codecs import WITHOUT, check_message_codecs, sample_keeper
from backend.planning.optimizers import optimizer_named
from backend.planning.rounded_sums import RoundedSums
from backend.profiles.state_precision import HALF, state_precision_named
from backend.runs.request.local_heads import LOCAL_HEADS
from backend.runs.request.optimizer_checks import (
    check_clipping,
    check_optimizer,
    check_warm_up,
)
from backend.runs.request.spec import TrainSpec


def check_combinations(spec: TrainSpec) -> None:
    """Raises `InvalidInput` where the schedule, shape, optimizer, precision and codecs of `spec` do
    not go together."""
    _check_schedule(spec)
    check_optimizer(spec.optimizer)
    check_warm_up(spec.optimizer, spec.epochs, spec.stop.updates)
    check_clipping(spec.optimizer, spec.plan.schedule)
    _check_precision(spec)
    _check_state_precision(spec)
    _check_elasticity(spec)
    _check_sharding(spec)
    if spec.plan.sites is not None:
        spec.plan.sites.check()
    check_message_codecs(spec.plan)
    _check_samples(spec)
    _check_codec_of_sums(spec)
    _check_splits(spec)
    _check_local_head(spec)


def _check_schedule(spec: TrainSpec) -> None:
    runs = [member.name for member in SCHEDULES.values() if member.trains and member.executable]
    plan, kept = spec.plan, spec.plan.schedule in WITHOUT_RULE
    if plan.schedule not in runs and not kept:
        raise InvalidInput(
            f"no schedule {plan.schedule!r} that trains", f"Choose one of: {', '.join(runs)}."
        )
    member = schedule(plan.schedule)
    if plan.recompute and not member.consistent:
        raise InvalidInput(
            f"schedule {member.name!r} changes weights between a microbatch's forward "
            "and its backward, so recomputing the forward gives other activations",
            "Switch recomputation off, or use a schedule that keeps versions.",
        )
    batch = plan.batch if member.batched else 1
    unit = plan.num_pipelines * lcm(*plan.partition.rounds, batch)
    member.check(plan.shape(unit, batch))
    if plan.kept_order:
        check_order(plan.schedule, plan.shape(unit, batch))


def _check_precision(spec: TrainSpec) -> None:
    if spec.precision == "float16" and not schedule(spec.plan.schedule).flushes:
        raise InvalidInput(
            f"schedule {spec.plan.schedule!r} never flushes, so the stages cannot agree whether "
            "a gradient overflowed float16 before the next update",
            "Use 'bfloat16', which needs no scale, or a schedule that flushes, such as "
            "'1f1b-flush'.",
        )


def _check_state_precision(spec: TrainSpec) -> None:
    kept = state_precision_named(spec.state_precision)
    if kept.weight == HALF and spec.precision != "bfloat16":
        raise InvalidInput(
            f"state precision {spec.state_precision!r} does not go together with compute in "
            f"{spec.precision}",
            "Set the precision of the compute to 'bfloat16', or keep the weights in float32.",
        )


def _check_elasticity(spec: TrainSpec) -> None:
    if spec.elasticity is not None and not 0 <= spec.elasticity * spec.plan.num_pipelines <= 1:
        raise InvalidInput(
            f"elasticity {spec.elasticity:g} is not in 0 up to 1 over the number of parallel "
            f"pipelines ({spec.plan.num_pipelines})",
            f"Use at most {1 / spec.plan.num_pipelines:g}.",
        )


def _check_local_head(spec: TrainSpec) -> None:
    if spec.local_head and spec.local_head not in LOCAL_HEADS:
        raise InvalidInput(
            f"there is no local head {spec.local_head!r}",
            f"Choose one of: {', '.join(LOCAL_HEADS)}; or none, for the one that suits the data.",
        )
    local = " or ".join(name for name, member in SCHEDULES.items() if member.local)
    if spec.local_head and not schedule(spec.plan.schedule).local:
        raise InvalidInput(
            f"schedule {spec.plan.schedule!r} has one loss, at the last stage, and a local head "
            f"{spec.local_head!r} is asked for",
            f"Leave it out, or plan with {local}.",
        )


def _check_samples(spec: TrainSpec) -> None:
    """Samples that a codec keeps must come again as they were."""
    data, name = spec.data, sample_keeper(spec.plan)
    drawn = {
        "pictures are augmented anew": (data.pictures.augments, "Leave the augmentation out"),
        "other tokens are hidden": (data.text.task == "masked", "Train on the next token"),
    }
    for what, (holds, advice) in drawn.items():
        if name and holds:
            raise InvalidInput(
                f"codec {name!r} sends what has changed in a sample since the epoch before, and in "
                f"every epoch {what}",
                f"{advice}, or {WITHOUT}",
            )


def _check_codec_of_sums(spec: TrainSpec) -> None:
    plan = spec.plan
    check_codec_of_sums(plan.codec_of_sums, max(plan.partition.replicas), plan.shard_state)
    if plan.codec_of_sums is None:
        return
    if isinstance(plan.codec_of_sums, RoundedSums):
        if state_precision_named(spec.state_precision).weight == HALF:
            raise InvalidInput(
                "a codec of sums rounds gradients to two bytes, and those of weights in bfloat16 "
                "have no more",
                "Keep weights in float32, or leave the codec out.",
            )
        return
    if spec.precision == "float16" or state_precision_named(spec.state_precision).weight == HALF:
        raise InvalidInput(
            "a codec of sums keeps what was not sent for later updates, which needs gradients in "
            "float32 without a scale that changes",
            "Keep weights in float32 and compute in float32 or bfloat16, or leave the codec out.",
        )


def _check_splits(spec: TrainSpec) -> None:
    """Of layers split by channels; whether the model has them is not known here."""
    if not spec.plan.splits:
        return
    check_splits(spec.plan)
    kind = optimizer_named(spec.optimizer.name)
    faults = {
        f"{kind.title} reads whole matrices, of which a replica has a slice": (
            not kind.is_elementwise,
            "Choose an optimizer that updates each number by itself, such as adam.",
        ),
        "exchanges of their activations are made in float32 alone": (
            spec.precision != "float32" or spec.state_precision != "float32",
            "Compute and keep the state in float32.",
        ),
    }
    for fault, (holds, advice) in faults.items():
        if holds:
            raise InvalidInput(
                f"layers cannot be split by channels: {fault}", f"{advice} Or split no layers."
            )


def _check_sharding(spec: TrainSpec) -> None:
    plan, kind = spec.plan, optimizer_named(spec.optimizer.name)
    if plan.shard_state and not kind.is_elementwise:
        raise InvalidInput(
            f"{kind.title} reads whole matrices, of which a replica with sharded state has a part",
            "Leave sharding out: it keeps only a row and a column of each matrix.",
        )
    if plan.shard_state and max(plan.partition.replicas) == 1:
        raise InvalidInput(
            f"no stage of partition {plan.partition.label} has several replicas, so there is "
            "nobody to share the optimizer's state with",
            "Leave sharding out, or use a plan that replicates a stage. Parallel pipelines have "
            "weights of their own and share no state.",
        )
