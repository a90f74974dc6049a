"""Schedules without a rule: their order is kept with the plan and repeated, batch after batch."""

from functools import partial

from backend.errors import InvalidInput
from backend.pipeline.kept_order import MOST_CELLS
from backend.pipeline.schedules.depth import Depth
from backend.pipeline.schedules.schedule import Schedule
from backend.pipeline.schedules.zero_bubble import ZB_H1
from backend.pipeline.shape import Shape


def everything(at: Depth) -> int:
    """All forwards of a batch."""
    return at.batch_here * at.chunks


def kept_order(shape: Shape) -> None:
    """Raises `InvalidInput` where no order is kept, or not one of this shape."""
    order = shape.kept_order
    if not order:
        raise InvalidInput(
            "no order is kept with this plan, and its schedule has no rule that makes one",
            advice="Give the order as a file (stageflow plan --order FILE), or plan with "
            "'synthesised', which finds one.",
        )
    if max(shape.replicas) > 1 or shape.num_pipelines > 1 or shape.recompute:
        recomputing = " with recomputation" if shape.recompute else ""
        raise InvalidInput(
            "a kept order is of one straight pipeline, without replicas, parallel pipelines or "
            f"recomputation, and this is {shape.num_pipelines} of {shape.replicas} replicas"
            f"{recomputing}",
            advice="Give each stage one device, or use a schedule of the catalog.",
        )
    if len(order) != shape.pipeline_size:
        raise InvalidInput(
            f"the kept order has {len(order)} ranks, the plan {shape.pipeline_size}",
            advice="Use an order with a row for each rank.",
        )
    if sum(row.count(" ") for row in order) > MOST_CELLS:
        raise InvalidInput(
            f"the kept order has more than {MOST_CELLS:,} computations",
            advice="Use fewer microbatches per update.",
        )


without_rule = partial(
    Schedule, warm_up=everything, chunked=True, placement=None, admits=kept_order, kept=True
)
CUSTOM = without_rule(name="custom", title="Imported order", source="a file")
SYNTHESISED = without_rule(
    name="synthesised",
    title="Synthesised for the plan",
    source="backend.pipeline.synthesis, after Qi et al., ICLR 2024, section 3",
    planned_as=ZB_H1.name,
)
WITHOUT_RULE = {rule.name: rule for rule in (CUSTOM, SYNTHESISED)}
