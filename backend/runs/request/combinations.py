"""What a training run cannot combine, refused before it is stored, with the reason."""

from math import isfinite, lcm

from backend.errors import InvalidInput
from backend.pipeline.schedules.catalog import SCHEDULES, schedule
from backend.pipeline.shape import Shape
from backend.planning.optimizers import optimizer_named
from backend.profiles.state_precision import HALF, state_precision_named
from backend.runs.request.groups import check_group
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import TrainSpec


def check_combinations(spec: TrainSpec) -> None:
    """Raises `InvalidInput` where the schedule, shape, optimizer and precision of `spec` do not
    go together."""
    _check_schedule(spec)
    _check_optimizer(spec.optimizer)
    _check_rule(spec.optimizer)
    _check_clipping(spec)
    _check_precision(spec)
    _check_state_precision(spec)
    _check_elasticity(spec)
    _check_sharding(spec)


def _check_schedule(spec: TrainSpec) -> None:
    runs = [member.name for member in SCHEDULES.values() if member.trains and member.executable]
    if spec.plan.schedule not in runs:
        raise InvalidInput(
            f"no schedule {spec.plan.schedule!r} that trains", f"There are {', '.join(runs)}."
        )
    member, plan = schedule(spec.plan.schedule), spec.plan
    if plan.recompute and not member.consistent:
        raise InvalidInput(
            f"schedule {member.name!r} changes weights between a microbatch's forward "
            "and its backward, so recomputing the forward gives other activations",
            "Switch recomputation off, or use a schedule that keeps versions.",
        )
    batch = plan.batch if member.batched else 1
    unit = plan.num_pipelines * lcm(*plan.partition.replicas, batch)
    member.check(
        Shape(
            plan.partition.replicas,
            unit,
            batch,
            chunks=plan.partition.chunks,
            advance=plan.advance,
            num_pipelines=plan.num_pipelines,
            recompute=plan.recompute,
        )
    )


def _check_optimizer(optimizer: OptimizerSpec) -> None:
    if not (isfinite(optimizer.learning_rate) and optimizer.learning_rate > 0):
        raise InvalidInput(f"learning rate {optimizer.learning_rate:g} is not above 0", "Try 0.01.")
    if not 0 <= optimizer.momentum < 1:
        raise InvalidInput(f"momentum {optimizer.momentum:g} is not in 0 up to 1", "Try 0.9.")
    if not (isfinite(optimizer.weight_decay) and optimizer.weight_decay >= 0):
        raise InvalidInput(f"weight decay {optimizer.weight_decay:g} is below 0", "Try 0.0001.")
    if not (isfinite(optimizer.warm_up) and optimizer.warm_up >= 0):
        raise InvalidInput(f"a warm-up of {optimizer.warm_up:g} epochs is below 0", "Try 1.")
    if not (optimizer.decay_epochs > 0 and 0 < optimizer.decay_factor <= 1):
        raise InvalidInput(
            f"a decay by {optimizer.decay_factor:g} every {optimizer.decay_epochs:g} epochs",
            "Use a factor above 0 and at most 1, and more than 0 epochs.",
        )


def _check_rule(optimizer: OptimizerSpec) -> None:
    """What some rules have and others have not, and what concerns some of the weights."""
    kind, betas, eps = optimizer_named(optimizer.name), optimizer.betas, optimizer.eps
    if betas is not None and (kind.betas is None or not all(0 <= beta < 1 for beta in betas)):
        raise InvalidInput(
            f"{kind.title} with betas {betas[0]:g} and {betas[1]:g}",
            "Adam, AdamW and Lion have two betas, in 0 up to 1.",
        )
    if eps is not None and (kind.eps is None or not (isfinite(eps) and eps > 0)):
        raise InvalidInput(f"{kind.title} with eps {eps:g}", "Adam and AdamW have one, above 0.")
    if optimizer.warm_up_updates < 0 or (optimizer.warm_up_updates and optimizer.warm_up):
        raise InvalidInput(
            f"a warm-up of {optimizer.warm_up_updates} updates and {optimizer.warm_up:g} epochs",
            "Give one of them.",
        )
    if not 0 <= optimizer.ema < 1:
        raise InvalidInput(
            f"averaged weights of which {optimizer.ema:g} stay at each update",
            "Use a share below 1, such as 0.999, or 0 for no average.",
        )
    for group in optimizer.groups:
        check_group(group)


def _check_clipping(spec: TrainSpec) -> None:
    most = spec.optimizer.clip_norm
    if most is None:
        return
    if not (isfinite(most) and most > 0):
        raise InvalidInput(f"gradients cannot be clipped to a norm of {most:g}", "Try 1.")
    if spec.optimizer.clip_by == "model" and not schedule(spec.plan.schedule).flushes:
        raise InvalidInput(
            f"schedule {spec.plan.schedule!r} never flushes, so the gradients of all stages are "
            "never known at the same time, nor is their norm",
            "Clip by each stage's own norm, use a schedule that flushes, such as '1f1b-flush', or "
            "no clipping.",
        )


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


def _check_sharding(spec: TrainSpec) -> None:
    plan, kind = spec.plan, optimizer_named(spec.optimizer.name)
    if plan.shard_state and not kind.is_elementwise:
        raise InvalidInput(
            f"{kind.title} reads whole matrices, of which a replica with sharded state has a part",
            "Leave sharding out: it keeps a row and a column of each matrix alone.",
        )
    if plan.shard_state and max(plan.partition.replicas) == 1:
        raise InvalidInput(
            f"no stage of partition {plan.partition.label} has several replicas, so there is "
            "nobody to share the optimizer's state with",
            "Leave sharding out, or use a plan that replicates a stage. Parallel pipelines have "
            "weights of their own and share no state.",
        )
