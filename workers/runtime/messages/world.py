"""The processes of one run: who they are, and what all of them agree on."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from workers.runtime.process import device

T = TypeVar("T")

PATIENCE = timedelta(minutes=30)
"""How long a rank waits for another one before it gives up."""


class Pending(Protocol):
    """A message or a sum under way."""

    def wait(self) -> object:
        """Return when it is done."""
        ...


class CollectiveTiming(Protocol):
    """How long the collectives of a group last, where that is not left to the machine; gradients
    are summed in buckets of `bucket_bytes`."""

    @property
    def bucket_bytes(self) -> int: ...

    def begin(
        self, ranks: tuple[int, ...], num_bytes: int, start: Callable[[], Pending], rounds: int = 2
    ) -> Pending:
        """Begin a collective of so many bytes over `ranks` by `start`: a sum goes round their ring
        twice, a gathering once."""
        ...


@dataclass(frozen=True, slots=True)
class World:
    """This process among the run's. All ranks call every method in the same order, but `send` and
    `received`."""

    rank: int
    size: int
    device: torch.device
    timing: CollectiveTiming | None = None
    host: int = 0
    hosts: int = 1

    @property
    def on_gpu(self) -> bool:
        return self.device.type == "cuda"

    def barrier(self) -> None:
        self.total([0.0])

    def agreed(self, value: float) -> float:
        """Rank 0's value."""
        tensor = torch.tensor([value], dtype=torch.float64, device=self.device)
        dist.broadcast(tensor, src=0)
        return float(tensor.item())

    def total(self, values: Sequence[float]) -> list[float]:
        """The sums over all ranks."""
        tensor = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(tensor)
        return [float(value) for value in tensor.tolist()]

    def gathered(self, value: T) -> list[T]:
        """Every rank's value, on rank 0; () on the others. The ranks of a run trust each other."""
        found: list[T] | None = [value] * self.size if self.rank == 0 else None
        dist.gather_object(value, found, dst=0)
        return found or []

    def told(self, value: T) -> T:
        """Rank 0's value, whatever the others give. The ranks of a run trust each other."""
        found = [value]
        dist.broadcast_object_list(found, src=0)
        return found[0]

    def send(self, pieces: Iterable[Tensor], to: int) -> None:
        """Send bytes to a rank that has asked for them by `received`; these two call it alone."""
        for piece in pieces:
            dist.send(piece.to(self.device), to)

    def received(self, source: int, size: int, block: int) -> Iterator[Tensor]:
        """The `size` bytes that `source` sends in pieces of `block`, all but the last; each piece
        is there until the next one is asked for."""
        space = torch.empty(min(size, block), dtype=torch.uint8, device=self.device)
        for first in range(0, size, block):
            piece = space[: min(block, size - first)]
            dist.recv(piece, source)
            yield piece

    @property
    def everybody(self) -> "Group":
        """All ranks."""
        default = dist.group.WORLD
        assert default is not None, "the processes have not met yet"
        return Group(tuple(range(self.size)), default)

    def group(self, ranks: tuple[int, ...]) -> "Group":
        return Group(ranks, dist.new_group(list(ranks), timeout=PATIENCE), self.timing)


@dataclass(frozen=True, slots=True)
class Group:
    """Some ranks; its methods are called by those ranks alone."""

    ranks: tuple[int, ...]
    handle: dist.ProcessGroup
    timing: CollectiveTiming | None = None

    def sum(self, tensor: Tensor) -> None:
        """Put the sum over the group in the tensor's place."""
        dist.all_reduce(tensor, group=self.handle)

    def gathered(self, value: T) -> list[T]:
        """Every rank's value, in the order of `ranks`. The ranks of a run trust each other."""
        found = [value] * len(self.ranks)
        dist.all_gather_object(found, value, group=self.handle)
        return found

    def sum_later(self, tensor: Tensor) -> Pending:
        """The same, begun; the tensor must be left alone until it is done."""

        def start() -> Pending:
            work: Pending | None = dist.all_reduce(tensor, group=self.handle, async_op=True)
            assert work is not None, "a rank outside the group asked for a sum"
            return work

        return self.timing.begin(self.ranks, tensor.nbytes, start) if self.timing else start()

    @property
    def place(self) -> int:
        """Of this rank in `ranks`."""
        return dist.get_rank(self.handle)

    def gather(self, flat: Tensor) -> None:
        """`flat` has an equal part for each rank in the order of `ranks`: put every rank's own part
        there."""
        self.gather_later(flat).wait()

    def gather_later(self, flat: Tensor) -> Pending:
        """The same, begun; the tensor must be left alone until it is done."""
        parts = flat.view(torch.uint8)  # whatever gloo thinks of the dtype
        own = parts.chunk(len(self.ranks))[self.place].clone()

        def start() -> Pending:
            work: Pending | None = dist.all_gather_single(
                parts, own, group=self.handle, async_op=True
            )
            assert work is not None, "a rank outside the group asked for its parts"
            return work

        return self.timing.begin(self.ranks, flat.nbytes, start, 1) if self.timing else start()

    def broadcast(self, tensor: Tensor, place: int = 0) -> None:
        """Give the tensor of the group's rank at `place` to all."""
        dist.broadcast(tensor, src=self.ranks[place], group=self.handle)

    def swap(self, flat: Tensor, given: Sequence[int], taken: Sequence[int]) -> Tensor:
        """Give each rank, in the order of `ranks`, so many numbers of `flat`; returns what each
        gives to this one, side by side. All do so at once, each in both directions."""
        found, size = flat.new_empty(sum(taken)), flat.itemsize
        dist.all_to_all_single(
            found.view(torch.uint8),  # whatever gloo thinks of the dtype
            flat.view(torch.uint8),
            [count * size for count in taken],
            [count * size for count in given],
            group=self.handle,
        )
        return found


def join() -> World:
    """Meet the other ranks as RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say; a process
    without them is alone. NCCL where there are GPUs, gloo on CPUs."""
    rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    chosen = device(int(os.environ.get("LOCAL_RANK", rank)))
    backend = "nccl" if chosen.type == "cuda" else "gloo"
    alone = None if "MASTER_ADDR" in os.environ else "tcp://127.0.0.1:0"
    dist.init_process_group(
        backend, init_method=alone, rank=rank, world_size=size, timeout=PATIENCE
    )
    host, hosts = os.environ.get("GROUP_RANK", "0"), os.environ.get("GROUP_WORLD_SIZE", "1")
    return World(rank, size, chosen, None, int(host), int(hosts))


def leave() -> None:
    """Part from the others; every rank calls it."""
    dist.destroy_process_group()
