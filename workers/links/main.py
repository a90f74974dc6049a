"""One device of a link test: `python -m workers.links.main`, in the environment of a rank.

Each pair of devices exchanges messages by itself, in turn, while the others wait: small ones for
the latency, large ones for the bandwidth. The first device prints every pair as JSON.
"""

import os
import sys
from collections.abc import Iterator
from datetime import timedelta
from statistics import median
from time import perf_counter

import torch
import torch.distributed as dist
from torch import Tensor

from backend.codec import to_json
from backend.ending import end_quickly
from backend.links.link_test import Link
from workers.runtime.process import device, die_with_parent, use_one_thread

SMALL, LARGE = 1, 8 << 20
"""Bytes of a message."""
ROUNDS_SMALL, ROUNDS_LARGE = 40, 8
WARM_UP = 3
PATIENCE = timedelta(seconds=60)
Links = tuple[Link, ...]


def main() -> int:
    """0 when everything is measured."""
    die_with_parent()
    end_quickly()
    use_one_thread()
    chosen = device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if chosen.type == "cuda" else "gloo", timeout=PATIENCE)
    mine = tuple(measured(dist.get_rank(), dist.get_world_size(), chosen))
    everything: list[Links] = [() for _ in range(dist.get_world_size())]
    dist.all_gather_object(everything, mine)
    if dist.get_rank() == 0:
        print(to_json(Links, sum(everything, ())).decode(), flush=True)
    dist.destroy_process_group()
    return 0


def measured(rank: int, size: int, chosen: torch.device) -> Iterator[Link]:
    """The links from this device to those with higher numbers."""
    for one in range(size):
        for other in range(one + 1, size):
            dist.barrier()
            if rank in (one, other):
                link = _measured_link(one, other, rank == one, chosen)
                if rank == one:
                    yield link


def _measured_link(one: int, other: int, begins: bool, chosen: torch.device) -> Link:
    """Half a round trip of a small message is the latency; what a large one takes beyond it gives
    the bandwidth."""
    peer = other if begins else one
    small, large = (torch.zeros(n, dtype=torch.uint8, device=chosen) for n in (SMALL, LARGE))
    latency = _one_way(small, peer, begins, ROUNDS_SMALL)
    seconds = _one_way(large, peer, begins, ROUNDS_LARGE)
    return Link(one, other, LARGE / max(seconds - latency, 1e-9), latency)


def _one_way(message: Tensor, peer: int, begins: bool, rounds: int) -> float:
    """Median seconds of half a round trip."""
    times = []
    for _ in range(WARM_UP + rounds):
        start = perf_counter()
        for is_mine in (begins, not begins):
            if is_mine:
                dist.send(message, peer)
            else:
                dist.recv(message, peer)
        if message.is_cuda:
            torch.cuda.synchronize()
        times.append((perf_counter() - start) / 2)
    return median(times[WARM_UP:])


if __name__ == "__main__":
    sys.exit(main())
