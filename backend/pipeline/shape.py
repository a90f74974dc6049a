"""How many of everything: lanes, positions, replicas, chunks, microbatches; who sits where."""

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from backend.errors import InvalidInput


@dataclass(frozen=True)
class Shape:
    """The shape of one program segment.

    replicas      ranks at each position of the pipeline, input first
    microbatches  microbatches of the whole segment, over all lanes
    batch         microbatches per weight update of one lane (stashing schedules update after
                  every round and ignore it)
    chunks        stages per position (interleaving); stage = chunk * positions + position
    advance       forwards that AFP runs ahead of 1F1B per later position (AvgPipe's figures
                  show 1); other schedules ignore it
    lanes         whole pipelines on the same devices (AvgPipe); one rank is one process, and
                  the ranks of all lanes at one place share a device
    recompute     whether forwards keep their inputs alone and run once more before the backward

    Batch b belongs to lane b mod lanes. Within a lane, microbatch k goes to replica k mod r of
    every position, there and back (PipeDream, section 3.2). Ranks count lanes first, then
    positions, then replicas. Raises `InvalidInput` where the counts cannot be shared evenly.
    """

    replicas: tuple[int, ...]
    microbatches: int
    batch: int = 1
    chunks: int = 1
    advance: int = 1
    lanes: int = 1
    recompute: bool = False

    def __post_init__(self) -> None:
        if not self.replicas or min(self.replicas) < 1 or self.chunks < 1:
            raise InvalidInput(f"shape {self.replicas} x {self.chunks} has an empty position")
        if self.lanes < 1 or self.advance < 0:
            raise InvalidInput(f"{self.lanes} lanes with an advance of {self.advance} are no shape")
        if self.batch < 1 or self.microbatches < self.batch or self.microbatches % self.batch:
            raise InvalidInput(
                f"{self.microbatches} microbatches are not whole batches of {self.batch}"
            )
        if self.microbatches // self.batch % self.lanes:
            raise InvalidInput(
                f"{self.microbatches // self.batch} batches cannot be shared evenly by "
                f"{self.lanes} lanes"
            )
        for position, count in enumerate(self.replicas):
            if self.lane_microbatches % count:
                raise InvalidInput(
                    f"{self.lane_microbatches} microbatches cannot be shared evenly by the "
                    f"{count} replicas at position {position}"
                )

    @property
    def positions(self) -> int:
        return len(self.replicas)

    @property
    def num_stages(self) -> int:
        return self.positions * self.chunks

    @property
    def num_devices(self) -> int:
        """The ranks of one lane; the other lanes sit on the same devices."""
        return sum(self.replicas)

    @property
    def num_ranks(self) -> int:
        return self.num_devices * self.lanes

    @property
    def lane_microbatches(self) -> int:
        """Microbatches of the segment that one lane gets."""
        return self.microbatches // self.lanes

    @cached_property
    def seats(self) -> tuple["Seat", ...]:
        """One seat per rank, in rank order."""
        return tuple(
            Seat(lane * self.num_devices + first + replica, position, replica, self, lane)
            for lane in range(self.lanes)
            for position, (first, count) in enumerate(
                zip(self.first_ranks, self.replicas, strict=True)
            )
            for replica in range(count)
        )

    @cached_property
    def first_ranks(self) -> tuple[int, ...]:
        """The first rank of each position in lane 0."""
        return (0, *accumulate(self.replicas[:-1]))

    def position_of(self, stage: int) -> int:
        return stage % self.positions

    def device_of(self, rank: int) -> int:
        """The device under `rank`, counted as the ranks of lane 0 are."""
        return rank % self.num_devices

    def lane_of(self, microbatch: int) -> int:
        return microbatch // self.batch % self.lanes

    def turn_of(self, microbatch: int) -> int:
        """The place of `microbatch` among those of its lane, from 0."""
        return microbatch // (self.batch * self.lanes) * self.batch + microbatch % self.batch

    def microbatch_at(self, lane: int, turn: int) -> int:
        """The microbatch of `lane` whose `turn_of` is `turn`."""
        batch, place = divmod(turn, self.batch)
        return (batch * self.lanes + lane) * self.batch + place

    def rank_of(self, stage: int, microbatch: int) -> int:
        """The rank that runs `microbatch` through `stage`."""
        position = self.position_of(stage)
        first = self.lane_of(microbatch) * self.num_devices + self.first_ranks[position]
        return first + self.turn_of(microbatch) % self.replicas[position]

    def group_of(self, stage: int, lane: int = 0) -> tuple[int, ...]:
        """The ranks of a lane that hold a replica of `stage`, ascending."""
        position = self.position_of(stage)
        first = lane * self.num_devices + self.first_ranks[position]
        return tuple(range(first, first + self.replicas[position]))

    def sharing(self, rank: int) -> tuple[int, ...]:
        """The ranks on the same device as `rank`, one per lane, ascending."""
        return tuple(range(self.device_of(rank), self.num_ranks, self.num_devices))


@dataclass(frozen=True)
class Seat:
    """One rank's place: its position, its replica there, its lane, and the microbatches it
    gets."""

    rank: int
    position: int
    replica: int
    shape: Shape
    lane: int = 0

    @property
    def stages(self) -> tuple[int, ...]:
        """The stages that this rank holds, one per chunk."""
        return tuple(
            chunk * self.shape.positions + self.position for chunk in range(self.shape.chunks)
        )

    @cached_property
    def microbatches(self) -> tuple[int, ...]:
        """This rank's microbatches of the whole segment, ascending."""
        turns = range(self.replica, self.shape.lane_microbatches, self.replicas_here)
        if self.shape.lanes == 1:
            return tuple(turns)
        return tuple(self.shape.microbatch_at(self.lane, turn) for turn in turns)

    @property
    def batches(self) -> tuple[tuple[int, ...], ...]:
        """This rank's microbatches, one tuple per weight update of a flush schedule.

        A replica may get nothing of a batch that is smaller than the replica count.
        """
        size, lanes = self.shape.batch, self.shape.lanes
        batches: list[list[int]] = [[] for _ in range(self.shape.lane_microbatches // size)]
        for microbatch in self.microbatches:
            batches[microbatch // size // lanes].append(microbatch)
        return tuple(tuple(batch) for batch in batches)

    @property
    def replicas_here(self) -> int:
        return self.shape.replicas[self.position]

    @property
    def positions(self) -> int:
        return self.shape.positions

    @property
    def chunks(self) -> int:
        return self.shape.chunks

    @property
    def advance(self) -> int:
        return self.shape.advance

    @property
    def batch_here(self) -> int:
        """Most microbatches that this rank gets of one batch."""
        return -(-self.shape.batch // self.replicas_here)

    @property
    def segment_here(self) -> int:
        """Microbatches of the whole segment that this rank gets."""
        return self.shape.lane_microbatches // self.replicas_here

    @property
    def num_batches(self) -> int:
        """Batches of the segment, of this rank's lane."""
        return self.shape.lane_microbatches // self.shape.batch

    @property
    def in_flight(self) -> int:
        """Forwards ahead of the first backward in 1F1B: ceil(sum of r_j from here on / r_here)
        (PipeDream, section 3.3: the NOAM of the pipeline that starts here)."""
        return -(-sum(self.shape.replicas[self.position :]) // self.replicas_here)

    @property
    def depth(self) -> int:
        """The same of the whole pipeline in this seat's rounds: ceil(sum of r_j / r_here)."""
        return -(-self.shape.num_devices // self.replicas_here)

    @property
    def at_input(self) -> int:
        """Forwards ahead at the input stage, over all its replicas."""
        first = self.shape.replicas[0]
        return -(-self.shape.num_devices // first) * first
