"""AFP: 1F1B with a flush whose forwards run further ahead, so that messages have time."""

from collections.abc import Iterator

from backend.pipeline.actions import Compute, Step
from backend.pipeline.schedules.rhythm import Rhythm, play
from backend.pipeline.schedules.schedule import Schedule, longest_batch, once_per_batch
from backend.pipeline.shape import Seat, Shape


def order(seat: Seat, shape: Shape) -> Iterator[Compute]:
    """Last but one of many positions, advance 1: F0 F1 F2 B0 F3 B1 F4 B2 B3 B4 step."""
    for batch in seat.batches:
        yield from play(seat.position, batch, rhythm(seat))
        yield Step(seat.position)


def rhythm(seat: Seat) -> Rhythm:
    """d + a (d - 1) forwards ahead, d as in 1F1B and a the advance of the shape.

    On a straight pipeline (p-s) + a (p-1-s): 7, 5, 3, 1 for four positions and a = 1, as the
    paper's figures show; the formula for any a, and for replicas, is ours.
    """
    depth = seat.in_flight
    return Rhythm(depth + seat.shape.advance * (depth - 1))


def in_flight(seat: Seat) -> int:
    """As many as run ahead, or the whole batch if it is smaller."""
    return min(rhythm(seat).ahead, longest_batch(seat))


AFP = Schedule(
    name="afp",
    title="Advance forward propagation (AvgPipe)",
    source="Chen, Xu, Qian, Zhou, PPoPP 2023, doi 10.1145/3572848.3577484",
    order=order,
    updates=once_per_batch,
    in_flight=in_flight,
    rhythm=rhythm,
)
