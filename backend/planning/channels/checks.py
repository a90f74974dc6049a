"""Which plans may split layers by channels in a run, and why others may not."""

from collections.abc import Sequence

from backend.errors import InvalidInput
from backend.pipeline.schedules.catalog import schedule
from backend.planning.channels.meeting import meets
from backend.planning.plan import Plan

LEAVE_OUT = "Leave the splits out, or change that (of orders gpipe's suits all replicas)."


def check_split_layers(plan: Plan, layers: Sequence[str]) -> None:
    """Raise `InvalidInput` where the splits of `plan`, whose stages count `layers` in that order,
    cannot run: their replicas have to compute microbatches of a round at the same time."""
    if not plan.splits:
        return
    check_splits(plan)
    ratios: dict[int, tuple[int, ...]] = {}
    names = [split.layer for split in plan.splits]
    for split in plan.splits:
        if split.layer not in layers or names.count(split.layer) > 1:
            raise InvalidInput(
                f"the splits name layer {split.layer!r}, which is not one layer of the model, or "
                "name it twice",
                f"Choose from: {', '.join(layers[:8])}{', ...' * (len(layers) > 8)}.",
            )
        place = layers.index(split.layer)
        number = next(n for n, s in enumerate(plan.partition.stages) if place < s.stop)
        replicas = plan.partition.stages[number].replicas
        parts = split.parts or (1,) * replicas
        if replicas == 1 or len(parts) != replicas or min(parts) < 1:
            raise InvalidInput(
                f"layer {split.layer} is to be split in the ratio {':'.join(map(str, parts))}, and "
                f"its stage {number} has {replicas} replicas",
                "Give a whole number above 0 for each of several replicas, or none for equal ones.",
            )
        if ratios.setdefault(number, parts) != parts:
            raise InvalidInput(
                f"layers of stage {number} are to be split in several ratios", "Give them one."
            )


def check_splits(plan: Plan) -> None:
    """Raise `InvalidInput` where no layers of a plan like this one can be split in a run."""
    if fault := _fault_of(plan):
        raise InvalidInput(f"layers cannot be split by channels: {fault}", LEAVE_OUT)


def can_split(plan: Plan) -> bool:
    """Whether runs may split layers of a plan like this one."""
    return not _fault_of(plan)


def _fault_of(plan: Plan) -> str:
    rule, partition = schedule(plan.schedule), plan.partition
    sums = plan.codec_of_sums is not None
    faults = {
        f"schedule {plan.schedule!r} does not flush with whole backwards": not (
            rule.flushes and rule.batched and rule.delay is None
        )
        or rule.local
        or rule.kept,
        "it has several chunks or pipelines": partition.chunks > 1 or plan.num_pipelines > 1,
        "replicas with unequal shares compute at different times": bool(partition.shares),
        "activations are computed again": plan.recompute,
        "the optimizer's state is sharded": plan.shard_state,
        "sums of gradients are coded": sums,
        f"its replicas {partition.label} do not share batches of {plan.batch} evenly": any(
            plan.batch % replicas for replicas in partition.replicas
        ),
    }
    found = next((fault for fault, holds in faults.items() if holds), "")
    if found or meets(plan):
        return found
    return f"replicas {partition.label} would wait for each other forever under {plan.schedule!r}"
