"""GPipe: all forwards of a batch, then all backwards, then one step."""

from collections.abc import Iterator

from backend.pipeline.actions import Backward, Compute, Forward, Step
from backend.pipeline.schedules.rhythm import Rhythm
from backend.pipeline.schedules.schedule import Schedule, longest_batch, once_per_batch
from backend.pipeline.shape import Seat, Shape


def order(seat: Seat, shape: Shape) -> Iterator[Compute]:
    """F0 F1 F2 F3 B0 B1 B2 B3 step."""
    for batch in seat.batches:
        yield from (Forward(seat.position, m) for m in batch)
        yield from (Backward(seat.position, m) for m in batch)
        yield Step(seat.position)


def rhythm(seat: Seat) -> Rhythm:
    """The whole batch ahead."""
    return Rhythm(seat.shape.batch)


GPIPE = Schedule(
    name="gpipe",
    title="GPipe",
    source="Huang et al., NeurIPS 2019, figure 2c",
    order=order,
    updates=once_per_batch,
    in_flight=longest_batch,
    rhythm=rhythm,
)
