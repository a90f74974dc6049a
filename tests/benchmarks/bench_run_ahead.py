"""What running further ahead gains on slow links: 2bw and pipedream, each with 0, 1 and 2 further
microbatches in flight per hop, in turns in one launch.

    python -m tests.benchmarks.bench_run_ahead [--networks 1gbit,100mbit] [--ranks 2,4] [--write]

A cell is the share of the compute bound (the slowest stage's measured compute) that the steady
state reaches: the median over the rounds, and of the simulator on the same clock. With more ranks
than cores a stage's compute is measured while others take the cores in turns.
"""

import argparse
import os
from collections.abc import Iterator
from itertools import product
from statistics import median

from tests.benchmarks.bench_runtime import raced
from tests.benchmarks.evidence import evidence
from tests.benchmarks.networks import available, network

PORT = 29_660
AHEAD = (0, 1, 2)


def main() -> None:
    kept = evidence("runtime", "bench_run_ahead")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="lstm,transformer,vgg")
    parser.add_argument("--networks", default="1gbit,100mbit")
    parser.add_argument("--schedules", default="2bw,pipedream")
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--microbatches", type=int, default=32)
    parser.add_argument("--batch", type=int, default=16, help="microbatches of 2bw's update")
    given = parser.parse_args()
    if not available():
        raise SystemExit("no right to make network namespaces here")
    head = [
        "model, link, ranks, schedule",
        *(f"run ahead {ahead}" for ahead in AHEAD),
        "samples/s",
        "load",
    ]
    kept.table("run-ahead", head, rows(given))


def rows(given: argparse.Namespace) -> Iterator[list[str]]:
    asked = (each.split(",") for each in (given.ranks, given.networks, given.models))
    for ranks, named, model in product(*asked):
        for schedule in given.schedules.split(","):
            with network(named, int(ranks)) as where:
                found = laps_of(given, model, schedule, where, int(ranks))
            yield [f"{model}, {named}, {ranks}, {schedule}", *map(share, found), *told(found)]


def laps_of(given: argparse.Namespace, model: str, schedule: str, where, ranks: int) -> list[list]:
    """The laps of each: [samples/s, steady seconds, bound, seconds on a clock]."""
    names = [f"{schedule} ahead {ahead}" for ahead in AHEAD]
    laps = raced(given, model, names, where, PORT, ranks)["laps"]
    return [laps[name] for name in names]


def share(laps: list) -> str:
    """Of the bound: measured, its range, and on the simulator's clock."""
    own = [bound / steady for _, steady, bound, _ in laps]
    clock = median(bound / seconds for _, _, bound, seconds in laps)
    return f"{median(own):.2f} ({min(own):.2f}-{max(own):.2f}), simulated {clock:.2f}"


def told(found: list[list]) -> list[str]:
    """Samples/s of each, and the load."""
    rates = " / ".join(f"{median(lap[0] for lap in laps):.0f}" for laps in found)
    return [rates, f"{os.getloadavg()[0]:.0f}"]


if __name__ == "__main__":
    main()
