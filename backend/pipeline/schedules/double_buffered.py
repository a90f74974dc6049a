"""PipeDream-2BW: 1F1B that never drains, one update per batch, two versions of the weights."""

from collections.abc import Iterator

from backend.errors import InvalidInput
from backend.pipeline.actions import Backward, Compute, Step
from backend.pipeline.schedules.pipedream import in_flight, rhythm
from backend.pipeline.schedules.rhythm import play
from backend.pipeline.schedules.schedule import Schedule, once_per_batch
from backend.pipeline.shape import Seat, Shape
from backend.pipeline.versions import one_batch_late


def order(seat: Seat, shape: Shape) -> Iterator[Compute]:
    """Last but one of many positions, batch 2: F0 F1 B0 F2 B1 step F3 B2 B3 step."""
    last = {batch[-1] for batch in seat.batches}
    for action in play(seat.position, seat.microbatches, rhythm(seat)):
        yield action
        if isinstance(action, Backward) and action.microbatch in last:
            yield Step(seat.position)


def two_versions(seat: Seat) -> int:
    """The newest and the one before it."""
    return min(2, len(seat.batches))


def long_batches(shape: Shape) -> None:
    """A seat must get at least as much of a batch as it runs ahead; on a straight pipeline
    this is m >= p (PipeDream-2BW, section 3.1)."""
    for seat in shape.seats:
        needed = seat.in_flight * seat.replicas_here
        if shape.batch < needed:
            raise InvalidInput(
                f"2bw updates every {shape.batch} microbatches, but position {seat.position} "
                f"runs {needed} ahead",
                advice=f"Use batches of {needed} or more microbatches, or fewer devices.",
            )


DOUBLE_BUFFERED = Schedule(
    name="2bw",
    title="PipeDream-2BW (double-buffered weights)",
    source="Narayanan et al., ICML 2021, arXiv 2006.09503, section 3.1",
    order=order,
    updates=once_per_batch,
    in_flight=in_flight,
    live=two_versions,
    versions=one_batch_late,
    flushes=False,
    admits=long_batches,
    rhythm=rhythm,
)
