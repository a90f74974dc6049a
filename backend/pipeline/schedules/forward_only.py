"""Evaluation: forwards alone, with the weights that the segment began with."""

from collections.abc import Iterator
from math import lcm

from backend.pipeline.actions import Compute, Forward
from backend.pipeline.schedules.depth import Depth
from backend.pipeline.schedules.interleaved import in_turns
from backend.pipeline.schedules.schedule import Schedule, Updates
from backend.pipeline.shape import RankCoordinates, Shape


def order(coordinates: RankCoordinates, shape: Shape) -> Iterator[Compute]:
    """F0 F1 F2 F3; with chunks in turns, as interleaving has it. All ranks count the same
    rounds of microbatches, whatever their replicas, so that none waits for a later one."""
    size = shape.pipeline_size * lcm(*shape.replicas) // coordinates.replicas_here
    for stage, microbatch in in_turns(coordinates.stages, coordinates.microbatches, size):
        yield Forward(stage, microbatch)


def no_updates(coordinates: RankCoordinates) -> Updates:
    """Nothing is learned."""
    return ()


def everything(at: Depth) -> int:
    """No backward follows."""
    return at.segment_here


FORWARD_ONLY = Schedule(
    name="forward-only",
    title="Forward only (evaluation)",
    source="no update, so no order to choose",
    warm_up=everything,
    order=order,
    updates=no_updates,
    flushes=False,
    trains=False,
    chunked=True,
    placement=None,
)
