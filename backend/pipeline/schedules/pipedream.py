"""PipeDream: 1F1B that never drains, a step after every backward; three ways with versions."""

from collections.abc import Iterator
from dataclasses import replace

from backend.pipeline.actions import Backward, Compute, Step
from backend.pipeline.schedules.rhythm import Rhythm, play
from backend.pipeline.schedules.schedule import Schedule, once_per_round, one_version
from backend.pipeline.shape import Seat, Shape
from backend.pipeline.versions import current, from_the_input


def order(seat: Seat, shape: Shape) -> Iterator[Compute]:
    """Last but one of many positions: F0 F1 B0 step F2 B1 step F3 B2 step B3 step."""
    for action in play(seat.position, seat.microbatches, rhythm(seat)):
        yield action
        if isinstance(action, Backward):
            yield Step(seat.position)


def rhythm(seat: Seat) -> Rhythm:
    """As many forwards ahead as the pipeline that starts here is deep."""
    return Rhythm(seat.in_flight, flushes=False)


def in_flight(seat: Seat) -> int:
    """As deep as the pipeline that starts here; a version is kept for each."""
    return min(seat.in_flight, len(seat.microbatches))


def live_with_vertical_sync(seat: Seat) -> int:
    """At most 1 + ceil((n - 1 - replica) / r_s) where the input stage has n microbatches in
    flight: a straight pipeline keeps as many versions at every position as it is deep (ours
    for replicas)."""
    first = seat.shape.seats[0]
    ahead = first.in_flight * first.replicas_here - 1 - seat.replica
    return min(1 - (-ahead // seat.replicas_here), len(seat.microbatches))


PIPEDREAM = Schedule(
    name="pipedream",
    title="PipeDream (1F1B with weight stashing)",
    source="Narayanan et al., SOSP 2019, sections 3.2 and 3.3",
    order=order,
    updates=once_per_round,
    in_flight=in_flight,
    live=in_flight,
    flushes=False,
    batched=False,
    rhythm=rhythm,
)
VERTICAL_SYNC = replace(
    PIPEDREAM,
    name="pipedream-vertical-sync",
    title="PipeDream with vertical sync",
    source="Narayanan et al., SOSP 2019, section 3.3",
    live=live_with_vertical_sync,
    versions=from_the_input,
)
NAIVE = replace(
    PIPEDREAM,
    name="pipedream-naive",
    title="PipeDream without stashing (for comparison only)",
    source="Narayanan et al., SOSP 2019, section 3.3: why versions are stashed",
    live=one_version,
    versions=current,
    consistent=False,
)
