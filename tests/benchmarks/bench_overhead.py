"""What an action costs beside the compute: stages that do nothing, on one and on two processes.

    python -m tests.benchmarks.bench_overhead [--write]

Seconds of CPU are counted (all threads of the process), so a busy machine changes little; a
forward and a backward of an empty stage through bare autograd are shown beside them.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import process_time

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.benchmarks.evidence import evidence  # noqa: E402

MICROBATCHES, ROUNDS, PORT = 400, 7, 29_641
CASES = {1: ("pipedream", "gpipe"), 2: ("pipedream", "1f1b-flush", "zb-h1")}
"""Schedules per number of processes."""
HEAD = ["processes", "schedule", "us of CPU per action", "bare autograd, forward and backward, us"]


def main() -> None:
    evidence("runtime", "bench_overhead").table("overhead", HEAD, rows())


def rows() -> Iterator[list[str]]:
    from tests.benchmarks.ranks import launch

    for size in CASES:
        found = launch(__file__, ["--rank"], size, PORT + size)
        for name, (cost, bare) in found.items():
            yield [str(size), name, f"{cost * 1e6:.1f}", f"{bare * 1e6:.1f}"]


def rank() -> None:
    from tests.benchmarks.contestants import Race
    from workers.runtime.messages.world import join, leave
    from workers.runtime.process import die_with_parent, use_one_thread

    die_with_parent()
    use_one_thread()
    world = join()
    file = Path(__file__).parent / "models" / "empty.py"
    bounds = (0, 4) if world.size == 1 else (0, 2, 4)
    race = Race(world, file, 1, 4, bounds, bounds)
    found = {name: (per_action(race, name), bare()) for name in CASES[world.size]}
    print(json.dumps(found), flush=True)
    leave()


def per_action(race, name: str) -> float:
    """Median seconds of CPU per action of this rank's program."""
    from tests.benchmarks.contestants import Ours, plan_of

    lap = Ours(race, plan_of(race, name))
    lap(race.batch * 4)
    costs = []
    for _ in range(ROUNDS):
        lap.prepare(MICROBATCHES)
        start = process_time()
        lap.execute()
        costs.append((process_time() - start) / lap.num_actions)
    return median(costs)


def bare() -> float:
    """The same forward and backward without any runtime."""
    import torch

    costs = []
    for _ in range(ROUNDS):
        start = process_time()
        for _ in range(MICROBATCHES):
            value = torch.zeros(1, 1).requires_grad_()
            torch.autograd.grad((value + 0 + 0 + 0 + 0).sum(), value)
        costs.append((process_time() - start) / MICROBATCHES)
    return median(costs)


if __name__ == "__main__":
    rank() if "--rank" in sys.argv else main()
