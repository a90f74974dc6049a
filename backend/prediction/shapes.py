"""How many microbatches a plan's program gets: in training, and in a prediction."""

from math import lcm

from backend.errors import InvalidInput
from backend.pipeline.shape import Shape
from backend.planning.plan import Plan

FILLS = 8
"""A simulated segment has at least 8 microbatches per device and two units; the steady state
is read from its second half (ours; a test holds it against a segment four times as long)."""


def microbatch_unit(plan: Plan) -> int:
    """The fewest microbatches of a segment: whole batches, shared evenly by all replicas."""
    return lcm(plan.batch, *plan.partition.replicas)


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
    return Shape(plan.partition.replicas, usable, plan.batch)


def steady_shape(plan: Plan) -> Shape:
    """The shape of a segment that is long enough to show the steady state."""
    unit = microbatch_unit(plan)
    units = max(2, -(-FILLS * plan.partition.num_devices // unit))
    return Shape(plan.partition.replicas, unit * (units + units % 2), plan.batch)
