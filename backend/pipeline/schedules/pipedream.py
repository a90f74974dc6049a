"""PipeDream: 1F1B that never drains, a step after every backward, stashed weights."""

from collections.abc import Iterator

from backend.pipeline.actions import Backward, Compute, Step
from backend.pipeline.schedules.one_forward_one_backward import one_forward_one_backward
from backend.pipeline.schedules.schedule import Schedule, once_per_round
from backend.pipeline.shape import Seat, Shape


def order(seat: Seat, shape: Shape) -> Iterator[Compute]:
    """Last but one of many positions: F0 F1 B0 step F2 B1 step F3 B2 step B3 step."""
    for action in one_forward_one_backward(seat.position, seat.microbatches, seat.in_flight):
        yield action
        if isinstance(action, Backward):
            yield Step(seat.position)


def in_flight(seat: Seat) -> int:
    """As deep as the pipeline that starts here; a version is kept for each."""
    return min(seat.in_flight, len(seat.microbatches))


PIPEDREAM = Schedule(
    name="pipedream",
    title="PipeDream (1F1B with weight stashing)",
    source="Narayanan et al., SOSP 2019, sections 3.2 and 3.3",
    order=order,
    updates=once_per_round,
    in_flight=in_flight,
    live=in_flight,
    flushes=False,
)
