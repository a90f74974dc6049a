"""The training's main, whose tensors are counted: of every rank a line "rank 0 held 4096 bytes, of
what it trained with 1024" is printed, the most that were alive while it was made and trained for an
epoch, and what of the training's is alive at its end."""

import os
from contextlib import ExitStack

import torch

from workers.profiler.allocations import Allocations, allocations
from workers.runtime import main as runtime
from workers.runtime import run
from workers.runtime.execution.executor import execute
from workers.runtime.rank import make_rank

COUNTING = ExitStack()
COUNTED: list[Allocations] = []


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
    named = f"rank {os.environ['RANK']} held {most} bytes"
    print(f"{named}, of what it trained with {trained.left}", flush=True)
    return None


def main() -> None:
    run.make_rank, run.execute = made, executed
    runtime.main()
