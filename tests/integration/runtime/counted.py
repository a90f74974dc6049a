"""The training's main, whose tensors are counted: of every rank a line "rank 0 held 4096 bytes" is
printed, the most that were alive while it was made and trained for an epoch."""

import os
import time
from collections.abc import Callable
from contextlib import ExitStack

import torch
import torch.distributed as dist
from torch import Tensor

from workers.profiler.allocations import Allocations, allocations
from workers.runtime import main as runtime
from workers.runtime import run
from workers.runtime.execution.executor import execute
from workers.runtime.messages.world import Pending
from workers.runtime.rank import make_rank

COUNTING = ExitStack()
COUNTED: list[Allocations] = []
COLLECTIVES = ("all_reduce", "all_gather_single", "all_to_all_single", "broadcast")
PATIENCE = 60.0
"""Seconds in which gloo's threads let go of a tensor."""


class LetGo:
    """A collective under way, done when gloo's thread has let go of its tensors too: a tensor whose
    last holder is that thread is let go of uncounted, as only this thread's allocations are."""

    def __init__(self, work: Pending, holders: list[tuple[Tensor, int]]) -> None:
        self._work, self._holders = work, holders

    def wait(self) -> None:
        """To be called once: afterwards nothing of the collective is held here either."""
        self._work.wait()
        del self._work
        deadline = time.monotonic() + PATIENCE
        while any(tensor._use_count() > before for tensor, before in self._holders):
            assert time.monotonic() < deadline, "a thread still holds what was summed or sent"
            time.sleep(0.0005)
        del self._holders


def let_go(collective: Callable[..., Pending]) -> Callable[..., LetGo | None]:
    """The collective, which is done when its tensors are let go of."""

    def called(*given, async_op: bool = False, **named) -> LetGo | None:
        holders = [(one, one._use_count()) for one in given if isinstance(one, Tensor)]
        work = LetGo(collective(*given, async_op=True, **named), holders)
        if async_op:
            return work
        work.wait()
        return None

    return called


def made(*given, **named):
    """Counting begins with it."""
    COUNTED.append(COUNTING.enter_context(allocations(torch.device("cpu"))))
    return COUNTED[0].during(lambda: make_rank(*given, **named))


def executed(*given, **named) -> None:
    """And ends with the first program."""
    if len(COUNTED[0].pieces):
        return execute(*given, **named)
    COUNTED[0].during(lambda: execute(*given, **named))
    COUNTING.close()
    start, trained = COUNTED[0].pieces
    most = max(start.most, start.left + trained.most)
    print(f"rank {os.environ['RANK']} held {most} bytes", flush=True)
    return None


def main() -> None:
    run.make_rank, run.execute = made, executed
    for name in COLLECTIVES:
        setattr(dist, name, let_go(getattr(dist, name)))
    runtime.main()
