"""How many of everything: positions, replicas, chunks, microbatches; and who sits where."""

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from backend.errors import InvalidInput


@dataclass(frozen=True)
class Shape:
    """The shape of one program segment.

    replicas      ranks at each position of the pipeline, input first
    microbatches  microbatches of the whole segment
    batch         microbatches per weight update of a flush schedule (1F1B with
                  stashing updates after every round and ignores it)
    chunks        stages per position (interleaving); stage = chunk * positions + position

    Microbatch k goes to replica k mod r of every position, there and back
    (PipeDream, section 3.2). Ranks count positions first, replicas within.
    Raises `InvalidInput` where the counts cannot be shared out evenly.
    """

    replicas: tuple[int, ...]
    microbatches: int
    batch: int = 1
    chunks: int = 1

    def __post_init__(self) -> None:
        if not self.replicas or min(self.replicas) < 1 or self.chunks < 1:
            raise InvalidInput(f"shape {self.replicas} x {self.chunks} has an empty position")
        if self.batch < 1 or self.microbatches < self.batch or self.microbatches % self.batch:
            raise InvalidInput(
                f"{self.microbatches} microbatches are not whole batches of {self.batch}"
            )
        for position, count in enumerate(self.replicas):
            if self.microbatches % count:
                raise InvalidInput(
                    f"{self.microbatches} microbatches cannot be shared evenly by the "
                    f"{count} replicas at position {position}"
                )

    @property
    def positions(self) -> int:
        return len(self.replicas)

    @property
    def num_stages(self) -> int:
        return self.positions * self.chunks

    @property
    def num_ranks(self) -> int:
        return sum(self.replicas)

    @cached_property
    def seats(self) -> tuple["Seat", ...]:
        """One seat per rank, in rank order."""
        return tuple(
            Seat(rank=first + replica, position=position, replica=replica, shape=self)
            for position, (first, count) in enumerate(
                zip(self._first_ranks, self.replicas, strict=True)
            )
            for replica in range(count)
        )

    @cached_property
    def _first_ranks(self) -> tuple[int, ...]:
        return (0, *accumulate(self.replicas[:-1]))

    def position_of(self, stage: int) -> int:
        return stage % self.positions

    def rank_of(self, stage: int, microbatch: int) -> int:
        """The rank that runs `microbatch` through `stage`."""
        position = self.position_of(stage)
        return self._first_ranks[position] + microbatch % self.replicas[position]

    def group_of(self, stage: int) -> tuple[int, ...]:
        """The ranks that hold a replica of `stage`, ascending."""
        position = self.position_of(stage)
        first = self._first_ranks[position]
        return tuple(range(first, first + self.replicas[position]))


@dataclass(frozen=True)
class Seat:
    """One rank's place: its position, its replica there, and the microbatches it gets."""

    rank: int
    position: int
    replica: int
    shape: Shape

    @property
    def stages(self) -> tuple[int, ...]:
        """The stages that this rank holds, one per chunk."""
        return tuple(
            chunk * self.shape.positions + self.position for chunk in range(self.shape.chunks)
        )

    @property
    def microbatches(self) -> tuple[int, ...]:
        """This rank's microbatches of the whole segment, ascending."""
        step = self.shape.replicas[self.position]
        return tuple(range(self.replica, self.shape.microbatches, step))

    @property
    def batches(self) -> tuple[tuple[int, ...], ...]:
        """This rank's microbatches, one tuple per weight update of a flush schedule.

        A replica may get nothing of a batch that is smaller than the replica count.
        """
        size = self.shape.batch
        batches: list[list[int]] = [[] for _ in range(self.shape.microbatches // size)]
        for microbatch in self.microbatches:
            batches[microbatch // size].append(microbatch)
        return tuple(tuple(batch) for batch in batches)

    @property
    def in_flight(self) -> int:
        """Forwards ahead of the first backward in 1F1B: ceil(sum of r_j from here on / r_here)
        (PipeDream, section 3.3: the NOAM of the pipeline that starts here)."""
        replicas = self.shape.replicas
        return -(-sum(replicas[self.position :]) // replicas[self.position])
