"""Zero bubble, H1 and H2: the weights' half of a backward waits until there is nothing else.

    H1, position 1 of 3   F0 F1 | I0 F2 | I1 W0 F3 | I2 W1 F4 | I3 W2 | I4 W3 | W4 step
    H2, position 1 of 3   F0 F1 F2 | I0 F3 | I1 F4 | I2 W0 | I3 W1 | I4 W2 | W3 W4 step

Replicas are ours: where the paper counts positions before and after a seat, rounds of that
seat are counted (`Seat.depth`, `Seat.in_flight`).
"""

from collections.abc import Callable, Iterator

from backend.pipeline.actions import Compute, Step
from backend.pipeline.schedules.rhythm import Rhythm, play
from backend.pipeline.schedules.schedule import Order, Schedule, longest_batch, once_per_batch
from backend.pipeline.shape import Seat, Shape

SOURCE = "Qi et al., ICLR 2024, arXiv 2401.10241, section 2"


def h1(seat: Seat) -> Rhythm:
    """As far ahead as 1F1B; the weights' half one backward later per position before."""
    return Rhythm(seat.in_flight, lag=seat.depth - seat.in_flight)


def h2(seat: Seat) -> Rhythm:
    """Twice as far ahead, twice as late."""
    return Rhythm(2 * seat.in_flight - 1, lag=2 * (seat.depth - seat.in_flight))


def ordered(rhythm: Callable[[Seat], Rhythm]) -> Order:
    """The order with that rhythm in every batch, and a step after it."""

    def order(seat: Seat, shape: Shape) -> Iterator[Compute]:
        for batch in seat.batches:
            yield from play(seat.position, batch, rhythm(seat))
            yield Step(seat.position)

    return order


def held(rhythm: Callable[[Seat], Rhythm]) -> Callable[[Seat], int]:
    """Activations are held until the weights' half: ahead + lag, the same at every position
    (p for H1, 2p - 1 for H2), or the whole batch if it is smaller."""

    def in_flight(seat: Seat) -> int:
        found = rhythm(seat)
        return min(found.ahead + (found.lag or 0), longest_batch(seat))

    return in_flight


ZB_H1 = Schedule(
    name="zb-h1",
    title="Zero bubble H1",
    source=SOURCE,
    order=ordered(h1),
    updates=once_per_batch,
    in_flight=held(h1),
    rhythm=h1,
)
ZB_H2 = Schedule(
    name="zb-h2",
    title="Zero bubble H2",
    source=SOURCE,
    order=ordered(h2),
    updates=once_per_batch,
    in_flight=held(h2),
    rhythm=h2,
)
