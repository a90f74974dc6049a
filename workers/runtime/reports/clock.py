"""One clock for the ranks of several hosts: how far each one's is ahead of rank 0's.

    rank 0    t0 ---.             .--- t1      offset = t - (t0 + t1) / 2
    rank r           '---- t ----'             error at most (t1 - t0) / 2

The exchange that came back soonest of several counts (Cristian, Distributed Computing 1989).
"""

import time
from dataclasses import dataclass

import torch
import torch.distributed as dist

ROUNDS = 12


@dataclass(frozen=True, slots=True)
class Offset:
    """Seconds that this rank's monotonic clock is ahead of rank 0's, and most that this is off."""

    seconds: float
    error: float


def now() -> float:
    """Seconds of this machine's monotonic clock, whichever its beginning."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def offset(rank: int, size: int, device: torch.device) -> Offset:
    """Every rank calls it; rank 0 asks the others in turn."""
    found = [_asked(other, device) for other in range(1, size)] if rank == 0 else []
    if rank > 0:
        _answer(device)
    table = torch.zeros(size, 2, dtype=torch.float64, device=device)
    for other, each in enumerate(found, start=1):
        table[other] = torch.tensor([each.seconds, each.error], dtype=torch.float64)
    dist.broadcast(table, src=0)
    return Offset(float(table[rank, 0]), float(table[rank, 1]))


def _asked(other: int, device: torch.device) -> Offset:
    ball = torch.zeros(1, dtype=torch.float64, device=device)
    best = Offset(0.0, float("inf"))
    for _ in range(ROUNDS):
        sent = now()
        dist.send(ball, other)
        dist.recv(ball, other)
        back = now()
        if (back - sent) / 2 < best.error:
            best = Offset(float(ball.item()) - (sent + back) / 2, (back - sent) / 2)
    return best


def _answer(device: torch.device) -> None:
    ball = torch.zeros(1, dtype=torch.float64, device=device)
    for _ in range(ROUNDS):
        dist.recv(ball, 0)
        ball.fill_(now())
        dist.send(ball, 0)
