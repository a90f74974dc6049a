"""What a schedule is: the order of compute, and the promises that the verifier holds it to."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from backend.errors import InvalidInput
from backend.pipeline.actions import Compute
from backend.pipeline.chunk_placement import V_CHUNKS, Placement
from backend.pipeline.kept_order import KeptBatch, KeptOrder, splits
from backend.pipeline.schedules.batch_order import BatchOrder, columns_at
from backend.pipeline.schedules.depth import Depth
from backend.pipeline.shape import RankCoordinates, Shape
from backend.pipeline.shares import Shares
from backend.pipeline.versions import Policy, newest

Order = Callable[[RankCoordinates, Shape], Iterator[Compute]]
"""What a rank computes, first to last; versions and messages are not its business."""

Updates = tuple[tuple[int, ...], ...]
"""One entry per `Step` of a stage: the microbatches of this rank that the step applies."""


def once_per_batch(coordinates: RankCoordinates) -> Updates:
    """One update per batch of the shape."""
    return coordinates.batches


def once_per_round(coordinates: RankCoordinates) -> Updates:
    """One update per microbatch of a replica: a round over the replicas of its pipeline rank."""
    return tuple((microbatch,) for microbatch in coordinates.microbatches)


def one_version(at: Depth) -> int:
    """Flush schedules hold one version of the weights."""
    return 1


def any_shape(shape: Shape) -> None:
    """Nothing is refused."""


def any_batch(replicas: tuple[int, ...], run_ahead: int) -> int:
    """One microbatch is enough."""
    return 1


@dataclass(frozen=True, slots=True)
class Schedule:
    """A member of the catalog. Nothing outside this folder asks for its name.

    name          how plans and commands call it; `title` is for people, `source` the paper
    warm_up       forwards before the first backward; then one backward, one forward
    delay         None: backwards in one; else the weights' half follows so many backwards later
    order         the compute of one rank, where `warm_up` and `delay` do not say it
    batch_order   the same of one batch, where ranks have several chunks
    updates       which microbatches each `Step` of a rank applies
    live          most weight versions of a stage that a rank holds
    versions      which version each action reads
    flushes       whether the pipeline drains before every update
    batched       whether an update applies a whole batch of the shape (else a round)
    trains        False: evaluation only, no backward and no step
    chunked       whether it admits several stages per pipeline rank
    placement     where these lie; None: anywhere
    consistent    whether each backward must read its forward's version; False for comparison
    executable    whether the runtime of the workers runs it
    searched      whether `best` tries it unasked
    no_slower     a schedule with the same order that does no more at an update, "" for none
    admits        raises `InvalidInput` with the numbers where a shape is not for it
    least_batch   fewest microbatches of an update that it admits for given replicas and run ahead
    parallel      whether a planner should try several pipelines on the same devices
    advances      advances (see `Shape`) that a planner should try
    runs_ahead    whether it takes further microbatches in flight per hop (`Shape.run_ahead`)
    warning       a sentence for who plans with it, "" for none
    kept          whether its order is kept with plan and shape (`Shape.kept_order`)
    planned_as    the schedule by which plans are made before their order is found, "" for itself
    grows_older   whether weights are the older the further it runs ahead
    local         whether each stage learns from a loss of its own and sends no gradient back
    """

    name: str
    title: str
    source: str
    warm_up: Callable[[Depth], int]
    delay: Callable[[Depth], int] | None = None
    order: Order | None = None
    batch_order: BatchOrder | None = None
    updates: Callable[[RankCoordinates], Updates] = once_per_batch
    live: Callable[[Depth], int] = one_version
    versions: Policy = newest
    flushes: bool = True
    batched: bool = True
    trains: bool = True
    chunked: bool = False
    placement: Placement | None = Placement.ROUND_ROBIN
    consistent: bool = True
    executable: bool = True
    searched: bool = True
    no_slower: str = ""
    admits: Callable[[Shape], None] = any_shape
    least_batch: Callable[[tuple[int, ...], int], int] = any_batch
    parallel: bool = False
    advances: tuple[int, ...] = (1,)
    runs_ahead: bool = False
    grows_older: bool = True
    local: bool = False
    warning: str = ""
    kept: bool = False
    planned_as: str = ""

    @property
    def is_v(self) -> bool:
        """Whether it is made for two chunks that lie as a V."""
        return self.placement is Placement.V

    @property
    def usual_chunks(self) -> int:
        """Stages per pipeline rank where nobody says how many."""
        return V_CHUNKS if self.is_v else 1

    def placement_of(self, chunks: int) -> Placement:
        """Where so many chunks of each rank lie."""
        return self.placement if self.placement and chunks > 1 else Placement.ROUND_ROBIN

    @property
    def averages(self) -> bool:
        """Whether several parallel pipelines can exchange what they learned after each update:
        not where an update changes weights under forwards that still wait for their backward."""
        return self.consistent

    @property
    def recomputation_frees(self) -> bool:
        """Whether recomputed activations go before the next ones are made: not where they wait
        for their weights' half."""
        return self.delay is None

    def routed(self, shape: Shape) -> Shape:
        """`shape` with the stages to which no gradient comes back: those where nothing up to them
        is trained, or with losses of their own all but the last."""
        return replace(shape, one_way=tuple(range(shape.num_stages - 1))) if self.local else shape

    def idle_backward(self, shape: Shape) -> NDArray[np.bool_]:
        """Per stage whether its backwards do nothing: no gradient comes back, and it has no loss
        of its own."""
        return shape.is_one_way & (not self.local)

    def order_of_batch(self, at: Depth) -> BatchOrder | None:
        """The order of one batch, where that is given whole."""
        if self.kept:
            return KeptBatch(at.kept_order) if at.kept_order else None
        return self.batch_order if at.chunks > 1 else None

    def splits(self, order: KeptOrder = ()) -> bool:
        """Whether some backwards are in halves; of a kept order that says."""
        return self.delay is not None or splits(order)

    def in_flight(self, at: Depth) -> int:
        """Most forwards (of all chunks) that a rank holds without their backward: those of the
        warm-up and those whose weights' half waits, or all of a batch (of the segment, where
        nothing drains) if they are fewer."""
        if not self.trains:
            return 0
        if whole := self.order_of_batch(at):
            return columns_at(whole, at).held
        period = at.batch_here if self.flushes else at.segment_here
        late = self.delay(at) if self.delay else 0
        return min(self.warm_up(at) + late, period * at.chunks)

    def deferred(self, at: Depth) -> int:
        """Most of them that have their inputs' half of the backward and not their weights'."""
        if whole := self.order_of_batch(at):
            return columns_at(whole, at).deferred
        return min(self.delay(at) + 1, self.in_flight(at)) if self.delay else 0

    def check_run_ahead(self, run_ahead: int) -> None:
        """Raises `InvalidInput` where it should run further ahead and does not."""
        if run_ahead and not self.runs_ahead:
            raise InvalidInput(
                f"schedule {self.name!r} takes no further microbatches in flight, and {run_ahead} "
                "per hop are asked for",
                advice="Run ahead by 0, or use a schedule that never drains, such as 'pipedream'.",
            )

    @property
    def takes_shares(self) -> bool:
        """Whether replicas may take unequal shares: where a whole batch makes one update, it is
        the same sum whoever computed it."""
        return self.batched

    def check_shares(self, shares: tuple[Shares, ...]) -> None:
        """Raises `InvalidInput` where replicas have shares and it takes none."""
        if any(shares) and not self.takes_shares:
            raise InvalidInput(
                f"schedule {self.name!r} updates after a microbatch of each replica, and unequal "
                "shares have no such rounds",
                advice="Use equal shares, or a schedule that updates by batches, such as "
                "'1f1b-flush' or '2bw'.",
            )

    def check_chunks(self, chunks: int) -> None:
        """Raises `InvalidInput` where so many on each rank cannot lie as it wants them."""
        if self.is_v and chunks != V_CHUNKS:
            raise InvalidInput(
                f"schedule {self.name!r} has {V_CHUNKS} chunks on each device, not {chunks}",
                advice=f"Ask for {V_CHUNKS} chunks, or for another schedule that interleaves.",
            )

    def check(self, shape: Shape) -> None:
        """Raises `InvalidInput` where `shape` is not one for this schedule."""
        if shape.chunks > 1 and not self.chunked:
            raise InvalidInput(
                f"schedule {self.name!r} runs one stage per pipeline rank, not {shape.chunks}",
                advice="Use one chunk, or a schedule that interleaves.",
            )
        wanted = self.placement or shape.placement
        if shape.chunks > 1 and shape.placement is not wanted:
            raise InvalidInput(
                f"schedule {self.name!r} places its chunks {wanted}, not {shape.placement}",
                advice="Plan with the schedule's name, which places them.",
            )
        if shape.num_pipelines > 1 and not self.averages:
            raise InvalidInput(
                f"schedule {self.name!r} has no updates after which {shape.num_pipelines} "
                "pipelines could exchange their weights",
                advice="Use one pipeline, or a schedule that keeps versions, such as 'pipedream'.",
            )
        self.check_run_ahead(shape.run_ahead)
        self.check_shares(shape.shares)
        if shape.kept_order and not self.kept:
            raise InvalidInput(
                f"schedule {self.name!r} is a rule, and the plan keeps an order beside it",
                advice="Leave the order out, or use schedule 'custom'.",
            )
        self.admits(shape)
