"""How many microbatches a plan's program gets: in training, and in a prediction."""

from bisect import bisect_right
from dataclasses import replace
from math import lcm

from backend.errors import InvalidInput
from backend.pipeline.shape import Shape
from backend.planning.plan import Partition, Plan
from backend.profiles.profile import Profile

FILLS = 8
"""A simulated segment has at least 8 microbatches per device and two units, more where it runs
ahead; the steady state is read from its second half (ours; a test holds it against a segment four
times as long)."""


MOST_MICROBATCHES = 100_000
"""Replica counts without common factors need long rounds; a plan with longer ones is refused."""


LONG = 16
"""Microbatches a device after which a search wants all replicas to be in turn again: a plan with
longer rounds is hard to train with, and to simulate."""


def microbatch_unit(plan: Plan) -> int:
    """The fewest microbatches of a segment: whole batches for every pipeline, shared evenly by all
    replicas. Raises `InvalidInput` where these are more than any prediction simulates."""
    unit = plan.num_pipelines * lcm(plan.batch, *plan.partition.rounds)
    if unit > MOST_MICROBATCHES:
        raise InvalidInput(
            f"replicas {plan.partition.label} and batches of {plan.batch} come round together "
            f"only after {unit} microbatches",
            "Use replica counts and a batch that share factors.",
        )
    return unit


def with_short_rounds(partition: Partition) -> Partition:
    """`partition`, or where its replicas come round together only after `LONG` microbatches a
    device, the same with fewer replicas: products of twos and threes."""
    if lcm(*partition.replicas) <= LONG * partition.num_devices or partition.chunks > 1:
        return partition
    smooth = sorted(2**a * 3**b for a in range(15) for b in range(9))
    stages = (
        replace(stage, devices=stage.devices[: smooth[bisect_right(smooth, stage.replicas) - 1]])
        for stage in partition.stages
    )
    return replace(partition, stages=tuple(stages))


def training_shape(plan: Plan, num_microbatches: int) -> Shape:
    """The shape of a segment of at most `num_microbatches`: what is over a whole number of
    units is left out. Raises `InvalidInput` where not one unit is left."""
    unit = microbatch_unit(plan)
    usable = num_microbatches // unit * unit
    if not usable:
        raise InvalidInput(
            f"{num_microbatches} microbatches of {plan.microbatch} samples are too few for "
            f"replicas {plan.partition.label} and batches of {plan.batch}: {unit} are needed",
            "Use more samples, a smaller microbatch, or a plan with fewer replicas.",
        )
    return plan.shape(usable)


def steady_shape(plan: Plan) -> Shape:
    """The shape of a segment that is long enough to show the steady state."""
    unit = microbatch_unit(plan)
    units = max(2, -(-FILLS * plan.partition.num_devices * (1 + plan.run_ahead) // unit))
    return plan.shape(unit * (units + units % 2))


def with_one_way(shape: Shape, profile: Profile, partition: Partition) -> Shape:
    """`shape` with the stages of `partition` to which no gradient comes back."""
    ends = profile.in_order(partition.order).graph.one_way
    quiet = (number for number, stage in enumerate(partition.stages) if ends[stage.stop - 1])
    return replace(shape, one_way=tuple(quiet))
