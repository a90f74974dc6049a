"""What codecs gain on slow links: a schedule with each of them, plain, and torch's 1F1B, in turns
in one launch of two or more processes.

    python -m tests.benchmarks.bench_codecs [--networks 1gbit] [--ranks 4] [--torch-at 11] [--write]

Cells: samples/s as a multiple of the plain schedule's, the range over the rounds, and kB per
sample at the interface; the steady share of the compute bound (the slowest stage's measured
compute, coding not counted). `--at` cuts the model in front of a layer for Stageflow's schedules
alone: coded, another cut may be the best. `--torch-at` races torch's 1F1B at each of these cuts
instead, beside the schedule alone and with int8 at the race's cut: where a schedule waits for
every message, a cut with fewer bytes may be the best.
"""

import argparse
import os
from collections.abc import Iterator
from itertools import product
from statistics import median

from tests.benchmarks.bench_runtime import raced, ratio
from tests.benchmarks.evidence import evidence
from tests.benchmarks.networks import available, network

PORT = 29_680
TORCH = "torch 1f1b"
CODECS = ("", "bf16", "int8", "fp8", "int4", "top10")
CUTS_HEAD = ["model, link", "torch's cut", "torch, samples/s", "ours", "samples/s", "times", "load"]


def main() -> None:
    kept = evidence("codecs", "bench_codecs")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="vgg,lstm,transformer")
    parser.add_argument("--networks", default="1gbit,100mbit")
    parser.add_argument("--schedules", default="2bw,2bw ahead 1")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--microbatches", type=int, default=32)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--codecs", default=",".join(CODECS[1:]), help="beside the plain schedule")
    parser.add_argument("--at", type=int, default=0)
    parser.add_argument("--torch-at", default="")
    given = parser.parse_args()
    if not available():
        raise SystemExit("no right to make network namespaces here")
    if given.torch_at:
        kept.table("torch-cuts", CUTS_HEAD, torch_rows(given))
        return
    shown = ["plain", *given.codecs.split(",")]
    head = ["model, link, cuts, schedule", TORCH, *shown, "load"]
    kept.table("codecs" if given.ranks == 2 else f"codecs-{given.ranks}", head, rows(given))


def rows(given: argparse.Namespace) -> Iterator[list[str]]:
    for named in given.networks.split(","):
        for model in given.models.split(","):
            for schedule in given.schedules.split(","):
                yield row(given, named, model, schedule)


def row(given: argparse.Namespace, named: str, model: str, schedule: str) -> list[str]:
    place = f" at {given.at}" if given.at else ""
    ours = [schedule + place, *(f"{schedule} with {c}{place}" for c in given.codecs.split(","))]
    names = [TORCH, *ours]
    with network(named, given.ranks) as where:
        found = raced(given, model, names, where, PORT, given.ranks)
    speeds = {name: [lap[0] for lap in found["laps"][name]] for name in names}
    plain = speeds[ours[0]]
    cells = []
    for name in names:
        bounds = [bound / steady for _, steady, bound, _ in found["laps"][name] if steady]
        share = f", {median(bounds):.2f} of the bound" if bounds else ""
        told = ratio(speeds[name], plain) if name != ours[0] else f"{median(plain):.1f} samples/s"
        cells.append(f"{told}{share}, {found['bytes'][name] / 1e3:.1f} kB")
    cuts = given.at or ", ".join(map(str, found["bounds"][0][1:-1]))
    return [f"{model}, {named}, {cuts}, {schedule}", *cells, f"{os.getloadavg()[0]:.0f}"]


def torch_rows(given: argparse.Namespace) -> Iterator[list[str]]:
    """One per cut of torch's and way of ours, all of a model in one launch."""
    cuts = given.torch_at.split(",")
    for named, model in product(given.networks.split(","), given.models.split(",")):
        ours = [f"{s}{codec}" for s in given.schedules.split(",") for codec in ("", " with int8")]
        names = [*(f"{TORCH} at {cut}" for cut in cuts), *ours]
        with network(named) as where:
            found = raced(given, model, names, where, PORT)
        speeds = {name: [lap[0] for lap in found["laps"][name]] for name in names}
        for cut, name in product(cuts, ours):
            theirs, mine = speeds[f"{TORCH} at {cut}"], speeds[name]
            rates = [f"{median(each):.1f}" for each in (theirs, mine)]
            told = f"{name} at {found['bounds'][0][1]}"
            load = f"{os.getloadavg()[0]:.0f}"
            yield [f"{model}, {named}", cut, rates[0], told, rates[1], ratio(mine, theirs), load]


if __name__ == "__main__":
    main()
