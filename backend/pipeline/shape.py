"""How many of everything a program has, and the coordinates of each of its ranks."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from backend.errors import InvalidInput
from backend.pipeline.chunk_placement import Placement, holder, stage_at
from backend.pipeline.kept_order import KeptOrder
from backend.pipeline.shape_checks import (
    check_batches,
    check_chunks,
    check_pipelines,
    check_rounds,
    check_shares,
)
from backend.pipeline.shares import Pattern, Shares, pattern, windows
from backend.pipeline.warm_up import warm_up_of


@dataclass(frozen=True)
class Shape:
    """The shape of one program segment.

    replicas          ranks at each pipeline rank, input first
    num_microbatches  of the whole segment, over all pipelines
    batch             microbatches per update of one pipeline (stashing schedules ignore it)
    chunks            stages per pipeline rank; chunk = stage // pipeline_size
    placement         which of the stages a pipeline rank holds (`chunk_placement`)
    advance           forwards that AFP runs ahead of 1F1B per later pipeline rank (AvgPipe's
                      figures show 1); other schedules ignore it
    num_pipelines     whole pipelines, whose ranks (processes) with equal coordinates share a device
                      (AvgPipe), unless they are `apart`
    recompute         whether forwards keep their inputs alone and run once more before the backward
    run_ahead         further microbatches in flight per hop under a schedule that never drains:
                      0 is 1F1B's warm-up
    one_way           stages to which no gradient comes back, so that their backwards wait for
                      nothing: nothing up to them is trained, and they do nothing, or the schedule
                      gives each a loss of its own (`Schedule.local`)
    shares            per pipeline rank the microbatches of a round of each replica, () = one each
    kept_order        what each rank computes in a batch, where no rule says it (`kept_order`)

    Batch b belongs to pipeline b mod num_pipelines. Within a pipeline, microbatch k goes to
    replica k mod r of every pipeline rank, there and back (PipeDream, section 3.2), or as shares
    say. Ranks are numbered by pipeline, then by pipeline rank, then by replica. Raises
    `InvalidInput` where counts cannot be shared evenly. Stored shapes have the aliases as keys.
    """

    replicas: tuple[int, ...]
    num_microbatches: Annotated[int, Field(alias="microbatches")]
    batch: int = 1
    chunks: int = 1
    advance: int = 1
    num_pipelines: Annotated[int, Field(alias="lanes")] = 1
    recompute: bool = False
    one_way: tuple[int, ...] = ()
    run_ahead: int = 0
    placement: Placement = Placement.ROUND_ROBIN
    shares: tuple[Shares, ...] = ()
    apart: bool = False
    kept_order: KeptOrder = ()

    def __post_init__(self) -> None:
        check_chunks(self.replicas, self.chunks, self.placement)
        check_pipelines(self.num_pipelines, self.advance, self.run_ahead)
        check_batches(self.num_microbatches, self.batch, self.num_pipelines)
        if not all(0 <= stage < self.num_stages - 1 for stage in self.one_way):
            raise InvalidInput(f"one-way stages {self.one_way} are not before the last stage")
        plain = self.chunks == self.num_pipelines == 1 and not self.run_ahead
        check_shares(self.shares, self.replicas, plain)
        check_rounds(self.microbatches_per_pipeline, self.replicas, self.rounds)

    @property
    def pipeline_size(self) -> int:
        """The number of pipeline ranks."""
        return len(self.replicas)

    @property
    def num_stages(self) -> int:
        return self.pipeline_size * self.chunks

    @cached_property
    def is_one_way(self) -> NDArray[np.bool_]:
        """Per stage whether no gradient comes back to it."""
        return np.isin(np.arange(self.num_stages), self.one_way)

    @cached_property
    def num_devices(self) -> int:
        """The ranks of one pipeline."""
        return sum(self.replicas)

    @property
    def num_ranks(self) -> int:
        return self.num_devices * self.num_pipelines

    @property
    def microbatches_per_pipeline(self) -> int:
        """Microbatches of the segment that one pipeline gets."""
        return self.num_microbatches // self.num_pipelines

    @cached_property
    def coordinates(self) -> tuple["RankCoordinates", ...]:
        """Of every rank, in rank order."""
        return tuple(map(self.at, range(self.num_ranks)))

    def at(self, rank: int) -> "RankCoordinates":
        """Those of one rank: a large shape's others may not be needed."""
        pipeline, place = divmod(rank, self.num_devices)
        pipeline_rank = bisect_right(self.first_ranks, place) - 1
        replica = place - self.first_ranks[pipeline_rank]
        return RankCoordinates(rank, pipeline_rank, replica, self, pipeline)

    def shares_at(self, pipeline_rank: int) -> Shares:
        """Those of the replicas at a pipeline rank; () = one microbatch of a round each."""
        return self.shares[pipeline_rank] if self.shares else ()

    @cached_property
    def patterns(self) -> tuple[Pattern, ...]:
        """Per pipeline rank the replica that takes each microbatch of a round."""
        ranks = range(self.pipeline_size)
        return tuple(pattern(self.shares_at(r) or (1,) * self.replicas[r]) for r in ranks)

    @property
    def rounds(self) -> tuple[int, ...]:
        """Microbatches of a round at each pipeline rank: one per replica, or the whole pattern."""
        return tuple(map(len, self.patterns)) if self.shares else self.replicas

    @cached_property
    def first_ranks(self) -> tuple[int, ...]:
        """The first rank of each pipeline rank in pipeline 0."""
        return (0, *accumulate(self.replicas[:-1]))

    def pipeline_rank_of(self, stage: int) -> int:
        return int(holder(self.placement, stage, self.pipeline_size))

    def stages_of(self, pipeline_rank: int) -> tuple[int, ...]:
        """The stages that a pipeline rank holds, one per chunk, ascending."""
        size = self.pipeline_size
        return tuple(
            int(stage_at(self.placement, chunk, pipeline_rank, size))
            for chunk in range(self.chunks)
        )

    def device_of(self, rank: int) -> int:
        """The device under `rank`, counted as the ranks are: of pipeline 0, or of all apart."""
        return rank if self.apart else rank % self.num_devices

    def pipeline_of(self, microbatch: int) -> int:
        return microbatch // self.batch % self.num_pipelines

    def turn_of(self, microbatch: int) -> int:
        """The place of `microbatch` among those of its pipeline, from 0."""
        return (
            microbatch // (self.batch * self.num_pipelines) * self.batch + microbatch % self.batch
        )

    def microbatch_at(self, pipeline: int, turn: int) -> int:
        """The microbatch of `pipeline` whose `turn_of` is `turn`."""
        batch, place = divmod(turn, self.batch)
        return (batch * self.num_pipelines + pipeline) * self.batch + place

    def rank_of(self, stage: int, microbatch: int) -> int:
        """The rank that runs `microbatch` through `stage`."""
        pipeline_rank = self.pipeline_rank_of(stage)
        first = self.pipeline_of(microbatch) * self.num_devices + self.first_ranks[pipeline_rank]
        turn, takers = self.turn_of(microbatch), self.patterns[pipeline_rank]
        return first + takers[turn % len(takers)]

    def group_of(self, stage: int, pipeline: int = 0) -> tuple[int, ...]:
        """The ranks of a pipeline that hold a replica of `stage`, ascending."""
        pipeline_rank = self.pipeline_rank_of(stage)
        first = pipeline * self.num_devices + self.first_ranks[pipeline_rank]
        return tuple(range(first, first + self.replicas[pipeline_rank]))

    def sharing(self, rank: int) -> tuple[int, ...]:
        """The ranks of all pipelines with the coordinates of `rank`, ascending."""
        return tuple(range(rank % self.num_devices, self.num_ranks, self.num_devices))


@dataclass(frozen=True)
class RankCoordinates:
    """Which pipeline, pipeline rank and replica a rank is, and the microbatches that it gets."""

    rank: int
    pipeline_rank: int
    replica: int
    shape: Shape
    pipeline: int = 0

    @property
    def stages(self) -> tuple[int, ...]:
        """The stages that this rank holds, one per chunk."""
        return self.shape.stages_of(self.pipeline_rank)

    @cached_property
    def microbatches(self) -> tuple[int, ...]:
        """This rank's microbatches of the whole segment, ascending."""
        turns: Iterable[int] = range(
            self.replica, self.shape.microbatches_per_pipeline, self.replicas_here
        )
        if self.shares_here:
            takers = np.array(self.shape.patterns[self.pipeline_rank])
            whole = np.tile(takers, self.shape.microbatches_per_pipeline // len(takers))
            turns = np.flatnonzero(whole == self.replica).tolist()
        if self.shape.num_pipelines == 1:
            return tuple(turns)
        return tuple(self.shape.microbatch_at(self.pipeline, turn) for turn in turns)

    @property
    def batches(self) -> tuple[tuple[int, ...], ...]:
        """This rank's microbatches, one tuple per weight update of a flush schedule.

        A replica may get nothing of a batch that is smaller than the replica count.
        """
        size, num_pipelines = self.shape.batch, self.shape.num_pipelines
        batches: list[list[int]] = [[] for _ in range(self.shape.microbatches_per_pipeline // size)]
        for microbatch in self.microbatches:
            batches[microbatch // size // num_pipelines].append(microbatch)
        return tuple(tuple(batch) for batch in batches)

    @property
    def shares_here(self) -> Shares:
        return self.shape.shares_at(self.pipeline_rank)

    @property
    def replicas_here(self) -> int:
        return self.shape.replicas[self.pipeline_rank]

    @property
    def pipeline_size(self) -> int:
        return self.shape.pipeline_size

    @property
    def chunks(self) -> int:
        return self.shape.chunks

    @property
    def advance(self) -> int:
        return self.shape.advance

    @property
    def run_ahead(self) -> int:
        return self.shape.run_ahead

    @property
    def kept_order(self) -> KeptOrder:
        return self.shape.kept_order

    @property
    def batch_here(self) -> int:
        """Most microbatches that this rank gets of one batch."""
        even = -(-self.shape.batch // self.replicas_here)
        return max(map(len, self.batches)) if self.shares_here else even

    @property
    def segment_here(self) -> int:
        """Microbatches of the whole segment that this rank gets."""
        whole = self.shape.microbatches_per_pipeline
        return len(self.microbatches) if self.shares_here else whole // self.replicas_here

    @property
    def num_batches(self) -> int:
        """Batches of the segment, of this rank's pipeline."""
        return self.shape.microbatches_per_pipeline // self.shape.batch

    @property
    def in_flight(self) -> int:
        """Forwards ahead of the first backward in 1F1B: ceil(sum of r_j from here on / r_here)
        (PipeDream, section 3.3: the NOAM of the pipeline that starts here), or by its share."""
        if self.shape.shares:
            every = windows(self.shape.patterns, self.shape.replicas)
            return every[self.pipeline_rank][self.replica]
        return -(-sum(self.shape.replicas[self.pipeline_rank :]) // self.replicas_here)

    @property
    def depth(self) -> int:
        """The same of the whole pipeline in this rank's rounds: ceil(sum of r_j / r_here)."""
        if self.shares_here:
            takers = self.shape.patterns[self.pipeline_rank]
            least = -(-self.shape.num_devices * takers.count(self.replica) // len(takers))
            return max(self.in_flight, least)
        return -(-self.shape.num_devices // self.replicas_here)

    @property
    def at_input(self) -> int:
        """Forwards ahead at the input stage, over all its replicas."""
        first = self.shape.replicas[0]
        return warm_up_of(-(-self.shape.num_devices // first), self.run_ahead) * first
