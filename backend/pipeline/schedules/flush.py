"""1F1B with a flush: one forward, one backward inside a batch; drained before each step."""

from collections.abc import Iterator

from backend.pipeline.actions import Compute, Step
from backend.pipeline.schedules.rhythm import Rhythm, play
from backend.pipeline.schedules.schedule import Schedule, longest_batch, once_per_batch
from backend.pipeline.shape import Seat, Shape


def order(seat: Seat, shape: Shape) -> Iterator[Compute]:
    """Last but one of many positions: F0 F1 B0 F2 B1 F3 B2 B3 step."""
    for batch in seat.batches:
        yield from play(seat.position, batch, rhythm(seat))
        yield Step(seat.position)


def rhythm(seat: Seat) -> Rhythm:
    """As many forwards ahead as the pipeline that starts here is deep."""
    return Rhythm(seat.in_flight)


def in_flight(seat: Seat) -> int:
    """As deep as the pipeline that starts here, or the whole batch if it is smaller."""
    return min(seat.in_flight, longest_batch(seat))


FLUSH = Schedule(
    name="1f1b-flush",
    title="1F1B with flush",
    source="PipeDream-Flush: Narayanan et al., ICML 2021, section 3.2",
    order=order,
    updates=once_per_batch,
    in_flight=in_flight,
    rhythm=rhythm,
)
