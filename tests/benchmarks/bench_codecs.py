"""What codecs gain on slow links: a schedule with each of them, plain, and torch's 1F1B, in turns
in one launch of two processes.

    python -m tests.benchmarks.bench_codecs [--networks 1gbit,100mbit] [--write]

Cells: samples/s as a multiple of the plain schedule's, the range over the rounds, and kB per
sample at the interface; the steady share of the compute bound (the slowest stage's measured
compute, coding not counted). `--at` cuts the model in front of a layer for Stageflow's schedules
alone: coded, another cut may be the best.
"""

import argparse
import os
from collections.abc import Iterator
from statistics import median

from tests.benchmarks.bench_runtime import raced, ratio
from tests.benchmarks.evidence import evidence
from tests.benchmarks.networks import available, network

PORT = 29_680
TORCH = "torch 1f1b"
CODECS = ("", "bf16", "int8", "fp8", "int4", "top10")


def main() -> None:
    kept = evidence("codecs", "bench_codecs")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="vgg,lstm,transformer")
    parser.add_argument("--networks", default="1gbit,100mbit")
    parser.add_argument("--schedules", default="2bw,2bw ahead 1")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--microbatches", type=int, default=32)
    parser.add_argument("--at", type=int, default=0)
    given = parser.parse_args()
    if not available():
        raise SystemExit("no right to make network namespaces here")
    head = ["model, link, cut, schedule", TORCH, *(name or "plain" for name in CODECS), "load"]
    kept.table("codecs", head, rows(given))


def rows(given: argparse.Namespace) -> Iterator[list[str]]:
    for named in given.networks.split(","):
        for model in given.models.split(","):
            for schedule in given.schedules.split(","):
                yield row(given, named, model, schedule)


def row(given: argparse.Namespace, named: str, model: str, schedule: str) -> list[str]:
    place = f" at {given.at}" if given.at else ""
    ours = [f"{schedule}{' with ' * bool(name)}{name}{place}" for name in CODECS]
    names = [TORCH, *ours]
    with network(named) as where:
        found = raced(given, model, names, where, PORT)
    speeds = {name: [lap[0] for lap in found["laps"][name]] for name in names}
    plain = speeds[ours[0]]
    cells = []
    for name in names:
        bounds = [bound / steady for _, steady, bound, _ in found["laps"][name] if steady]
        share = f", {median(bounds):.2f} of the bound" if bounds else ""
        told = ratio(speeds[name], plain) if name != ours[0] else f"{median(plain):.1f} samples/s"
        cells.append(f"{told}{share}, {found['bytes'][name] / 1e3:.1f} kB")
    cut = given.at or found["bounds"][0][1]
    return [f"{model}, {named}, {cut}, {schedule}", *cells, f"{os.getloadavg()[0]:.0f}"]


if __name__ == "__main__":
    main()
