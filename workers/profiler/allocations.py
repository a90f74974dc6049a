"""How many bytes pieces of work have alive at once, as torch's allocators count them."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile, record_function

T = TypeVar("T")

SILENT = "6"
"""Above every level of torch's profiler, which else prints of its start and stop."""

WORK = "stageflow work "


@dataclass(frozen=True, slots=True)
class Allocated:
    """Bytes beyond those that were alive before: `most` at once, and `left` at the end."""

    most: int
    left: int


class Allocations(Protocol):
    """Of each piece of work, in order; known when the block of `allocations` has ended."""

    pieces: list[Allocated]

    def during(self, work: Callable[[], T]) -> T:
        """Do a piece of work and count what it allocates."""
        ...


@contextmanager
def allocations(device: torch.device) -> Iterator[Allocations]:
    """Count on `device` inside."""
    if device.type == "cuda":
        yield OnDevice(device)
        return
    os.environ.setdefault("KINETO_LOG_LEVEL", SILENT)
    found = OnHost()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        yield found
    found.read(profiler.profiler.kineto_results.events())


@dataclass(slots=True)
class OnDevice:
    """A GPU's allocator keeps its own peak."""

    device: torch.device
    pieces: list[Allocated] = field(default_factory=list)

    def during(self, work: Callable[[], T]) -> T:
        torch.cuda.reset_peak_memory_stats(self.device)
        before = torch.cuda.memory_allocated(self.device)
        result = work()
        after = torch.cuda.memory_allocated(self.device)
        most = torch.cuda.max_memory_allocated(self.device)
        self.pieces.append(Allocated(most - before, after - before))
        return result


@dataclass(slots=True)
class OnHost:
    """The CPU's allocator tells torch's profiler of every allocation, with its time."""

    pieces: list[Allocated] = field(default_factory=list)
    count: int = 0

    def during(self, work: Callable[[], T]) -> T:
        with record_function(f"{WORK}{self.count}"):
            self.count += 1
            return work()

    def read(self, events: list[Any]) -> None:
        """Make the pieces of the profiler's events."""
        changes = sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]")
        times, sizes = np.array(changes, dtype=np.int64).reshape(-1, 2).T
        spans = {e.name(): (e.start_ns(), e.end_ns()) for e in events if e.name().startswith(WORK)}
        for number in range(self.count):
            first, stop = np.searchsorted(times, spans[f"{WORK}{number}"])
            alive = np.concatenate([[0], np.cumsum(sizes[first:stop])])
            self.pieces.append(Allocated(int(alive.max()), int(alive[-1])))
