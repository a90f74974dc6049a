"""What a schedule is: the order of compute, and the promises that the verifier holds it to."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from backend.pipeline.actions import Compute
from backend.pipeline.shape import Seat, Shape
from backend.pipeline.versions import Policy, newest

Order = Callable[[Seat, Shape], Iterator[Compute]]
"""What the rank on a seat computes, first to last; versions and messages are not its business."""

Updates = tuple[tuple[int, ...], ...]
"""One entry per `Step` of a stage: the microbatches of this seat that the step applies."""


def once_per_batch(seat: Seat) -> Updates:
    """One update per batch of the shape."""
    return seat.batches


def once_per_round(seat: Seat) -> Updates:
    """One update per microbatch of a replica: a round over the replicas of its position."""
    return tuple((microbatch,) for microbatch in seat.microbatches)


def one_version(seat: Seat) -> int:
    """Flush schedules hold one version of the weights."""
    return 1


@dataclass(frozen=True, slots=True)
class Schedule:
    """A member of the catalog.

    name       how plans and commands call it; `title` is for people, `source` the paper
    order      the compute of one rank (chunks: for all `seat.stages`)
    updates    which microbatches each `Step` of a seat applies
    in_flight  most forwards that a rank holds without their backward
    live       most weight versions of a stage that a rank holds
    versions   which version each action reads
    flushes    whether the pipeline drains before every update
    trains     False: evaluation only, no backward and no step
    chunked    whether it admits several stages per position
    """

    name: str
    title: str
    source: str
    order: Order
    updates: Callable[[Seat], Updates]
    in_flight: Callable[[Seat], int]
    live: Callable[[Seat], int] = one_version
    versions: Policy = newest
    flushes: bool = True
    trains: bool = True
    chunked: bool = False
