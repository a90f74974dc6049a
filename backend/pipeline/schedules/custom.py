"""Orders that come from outside: a flush schedule that promises nothing but one version."""

from collections.abc import Iterator

from backend.errors import InvalidInput
from backend.pipeline.actions import Compute
from backend.pipeline.schedules.depth import Depth
from backend.pipeline.schedules.schedule import Schedule
from backend.pipeline.shape import RankCoordinates, Shape


def order(coordinates: RankCoordinates, shape: Shape) -> Iterator[Compute]:
    """There is no rule behind it."""
    raise InvalidInput("a custom order has no rule to make another one by")


def everything(at: Depth) -> int:
    """All forwards of a batch."""
    return at.batch_here * at.chunks


CUSTOM = Schedule(
    name="custom",
    title="Imported order",
    source="a file",
    warm_up=everything,
    order=order,
    chunked=True,
    placement=None,
    executable=False,
)
