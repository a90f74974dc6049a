"""Orders that come from outside: a flush schedule that promises nothing but one version."""

from collections.abc import Iterator

from backend.errors import InvalidInput
from backend.pipeline.actions import Compute
from backend.pipeline.schedules.schedule import Schedule, once_per_batch
from backend.pipeline.shape import Seat, Shape


def order(seat: Seat, shape: Shape) -> Iterator[Compute]:
    """There is no rule behind it."""
    raise InvalidInput("a custom order has no rule to make another one by")


def everything(seat: Seat) -> int:
    """All forwards of the segment."""
    return len(seat.microbatches) * seat.shape.chunks


CUSTOM = Schedule(
    name="custom",
    title="Imported order",
    source="a file",
    order=order,
    updates=once_per_batch,
    in_flight=everything,
    chunked=True,
    executable=False,
)
