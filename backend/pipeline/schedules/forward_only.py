"""Evaluation: forwards alone, with the weights that the segment began with."""

from collections.abc import Iterator

from backend.pipeline.actions import Compute, Forward
from backend.pipeline.schedules.schedule import Schedule, Updates
from backend.pipeline.shape import Seat, Shape


def order(seat: Seat, shape: Shape) -> Iterator[Compute]:
    """F0 F1 F2 F3."""
    yield from (Forward(seat.position, m) for m in seat.microbatches)


def no_updates(seat: Seat) -> Updates:
    """Nothing is learned."""
    return ()


def in_flight(seat: Seat) -> int:
    """No forward is kept for a backward."""
    return 0


FORWARD_ONLY = Schedule(
    name="forward-only",
    title="Forward only (evaluation)",
    source="no update, so no order to choose",
    order=order,
    updates=no_updates,
    in_flight=in_flight,
    flushes=False,
    trains=False,
)
