"""What a schedule is: the order of compute, and the promises that the verifier holds it to."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from backend.errors import InvalidInput
from backend.pipeline.actions import Compute
from backend.pipeline.schedules.rhythm import Rhythm
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


def longest_batch(seat: Seat) -> int:
    """Most microbatches that the seat gets of one batch."""
    return max(len(batch) for batch in seat.batches)


def any_shape(shape: Shape) -> None:
    """Nothing is refused."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A member of the catalog.

    name        how plans and commands call it; `title` is for people, `source` the paper
    order       the compute of one rank (chunks: for all `seat.stages`)
    updates     which microbatches each `Step` of a seat applies
    in_flight   most forwards that a rank holds without their backward
    live        most weight versions of a stage that a rank holds
    versions    which version each action reads
    flushes     whether the pipeline drains before every update
    batched     whether an update applies a whole batch of the shape (else a round)
    trains      False: evaluation only, no backward and no step
    chunked     whether it admits several stages per position
    consistent  whether each backward must read its forward's version; False for comparison
    executable  whether the runtime of the workers runs it
    admits      raises `InvalidInput` with the numbers where a shape is not for it
    rhythm      the same order as a pattern, from which long programs are made fast
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
    batched: bool = True
    trains: bool = True
    chunked: bool = False
    consistent: bool = True
    executable: bool = True
    admits: Callable[[Shape], None] = any_shape
    rhythm: Callable[[Seat], Rhythm] | None = None

    def check(self, shape: Shape) -> None:
        """Raises `InvalidInput` where `shape` is not one for this schedule."""
        if shape.chunks > 1 and not self.chunked:
            raise InvalidInput(
                f"schedule {self.name!r} runs one stage per position, not {shape.chunks}",
                advice="Use one chunk, or a schedule that interleaves.",
            )
        if shape.lanes > 1 and self.trains and not self.flushes:
            raise InvalidInput(
                f"schedule {self.name!r} never drains, but {shape.lanes} lanes average after "
                "every flush",
                advice="Use one lane, or a schedule that flushes, such as 'afp'.",
            )
        self.admits(shape)
