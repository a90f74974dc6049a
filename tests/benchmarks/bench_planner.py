"""The planner beside the published one, the paper, and time.

Prints tables in Markdown, those of docs/evidence/planner.md, and writes them there with
`--write`. Needs the published profiles beside the repository (../shared/profiles) for all but the
last two.
"""

import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "planning"))

from published import FOLDER, MODELS, Answer, answers, at_batch, load

from backend.cluster.cluster import Cluster, Level
from backend.cluster.presets import cluster_a, cluster_b
from backend.planning.baselines import data_parallel, straight
from backend.planning.cuts import cut_of
from backend.planning.pipedream.bottleneck import bottleneck
from backend.planning.pipedream.planner import optimum
from backend.planning.plan import Partition, Plan
from backend.prediction.predict import predict
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from tests.benchmarks.evidence import evidence

REPEATS = 3


def main() -> None:
    page = evidence("planner", "bench_planner")
    if FOLDER.is_dir():
        print("\nOur plan and the published one, by one cost model")
        page.table("bottlenecks", HEAD, against_published())
        print("\nThe paper, the published program, ours")
        page.table("paper", PAPER_HEAD, beside_the_paper())
        print("\nA plan edited by hand, milliseconds")
        page.table("edits", EDIT_HEAD, edits())
    print("\nChains: CPU seconds by layers and devices")
    page.table("chains", CURVE_HEAD, curve())
    print("\nBranches side by side: CPU seconds")
    page.table("branches", WIDE_HEAD, wide())


def cpu(work: Callable[[], object]) -> float:
    """Processor seconds, the smallest of some repetitions."""
    found = []
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


HEAD = [
    "profile",
    "runs",
    "ratio of bottlenecks, least",
    "median",
    "most",
    "CPU s published",
    "CPU s ours",
    "least gain",
]


@dataclass(frozen=True)
class Pair:
    """The published plan's bottleneck over ours, and the CPU seconds of both planners."""

    ratio: float
    theirs: float
    ours: float


def against_published() -> Iterator[Sequence[str]]:
    """By profile, then all of them."""
    pairs: dict[str, list[Pair]] = {}
    for answer in answers():
        pairs.setdefault(answer.model, []).append(paired(answer))
    for model, found in pairs.items():
        yield model, str(len(found)), *ratios(found), *costs(found)
    found = [pair for each in pairs.values() for pair in each]
    yield "all", str(len(found)), "", "", "", *costs(found)


def paired(answer: Answer) -> Pair:
    profile, cluster = load(answer.model), answer.cluster
    took = cpu(lambda: optimum(profile, cluster))
    ratio = answer.seconds() / optimum(profile, cluster).seconds
    return Pair(ratio, answer.cpu_seconds, took)


def ratios(pairs: Sequence[Pair]) -> list[str]:
    each = [pair.ratio for pair in pairs]
    return [f"{one:.2f}" for one in (min(each), median(each), max(each))]


def costs(pairs: Sequence[Pair]) -> tuple[str, str, str]:
    theirs, ours = (sum(getattr(one, of) for one in pairs) for of in ("theirs", "ours"))
    least = min(pair.theirs / pair.ours for pair in pairs)
    return f"{theirs:.1f}", f"{ours:.2f}", f"{least:,.0f}x"


PAPER_HEAD = [
    "model, batch, cluster",
    "paper",
    "published program",
    "ours",
    "cost model",
    "simulated",
    "straight, simulated",
]
FLAT = {
    "10 Gbit/s flat": Cluster((Level(16, 1.25e9),)),
    "25 Gbit/s flat": Cluster((Level(16, 3.125e9),)),
}


def beside_the_paper() -> Iterator[Sequence[str]]:
    """The published program's plan is that with activations counted, on the servers if it
    finishes there, else on the flat cluster."""
    vgg = at_batch(load("vgg16"), 64)
    cases = [
        ("VGG-16, 64", vgg, cluster_a(), "Cluster-A 4x4", "15-1, 5.28x", "12-1-1-1-1"),
        ("VGG-16, 64", vgg, FLAT["10 Gbit/s flat"], "16 at 10 Gbit/s", "", "13-2-1"),
        ("VGG-16, 64", vgg, FLAT["25 Gbit/s flat"], "16 at 25 Gbit/s", "", "15-1"),
        ("VGG-16, 64", vgg, cluster_b(), "Cluster-B 2x8", "", "8-5-2-1"),
        (
            "AlexNet, 256",
            load("alexnet"),
            cluster_a(),
            "Cluster-A 4x4",
            "15-1, 4.92x",
            "8-1-2-1-3-1",
        ),
        ("ResNet-50, 128", load("resnet50"), cluster_a(), "Cluster-A 4x4", "16, 1x", "4-4-4-4"),
        ("GNMT-16", load("gnmt_large"), cluster_a(), "Cluster-A 4x4", "straight", "not in 1,200 s"),
    ]
    for title, profile, cluster, where, paper, published in cases:
        found = optimum(profile, cluster)
        alone = data_parallel(profile, cluster)
        base = rate(profile, cluster, alone)
        yield (
            f"{title}, {where}",
            paper,
            published,
            found.partition.label,
            f"{bottleneck(profile, cluster, alone) / found.seconds:.2f}x",
            f"{rate(profile, cluster, found.partition) / base:.2f}x",
            f"{rate(profile, cluster, straight(profile, cluster)) / base:.2f}x",
        )


def rate(profile: Profile, cluster: Cluster, partition: Partition) -> float:
    plan = Plan("", partition, "pipedream", profile.microbatch)
    return predict(profile, cluster, plan).samples_per_second


EDIT_HEAD = ["profile", "plan", "ms"]


def edits() -> Iterator[Sequence[str]]:
    for model in MODELS:
        profile, cluster = load(model), cluster_a()
        plan = Plan("", optimum(profile, cluster).partition, "pipedream", 1)
        half = len(profile.layers) // 2
        stops, replicas = [half, len(profile.layers)], [9, 7]
        took = cpu(lambda p=profile, s=stops, r=replicas, n=plan: edited(p, n, s, r))
        yield model, "9-7", f"{took * 1e3:.0f}"


def edited(profile: Profile, plan: Plan, stops: list[int], replicas: list[int]) -> None:
    """What the page does when a person moves a cut."""
    cut = cut_of(stops, replicas, plan.partition, cluster_a().num_devices)
    predict(profile, cluster_a(), replace(plan, partition=cut))


CURVE_HEAD = ["layers", "16", "64", "256", "1,024", "8 x 128", "8 x 8 x 16"]


def curve() -> Iterator[Sequence[str]]:
    flat = [Cluster((Level(count, 1e9),)) for count in (16, 64, 256, 1024)]
    two = Cluster((Level(8, 1e10), Level(128, 1e9)))
    three = Cluster((Level(8, 1e11), Level(8, 1e10), Level(16, 1e9)))
    for layers in (50, 100, 200, 500, 1000):
        profile = chain(layers)
        times = [cpu(lambda c=c, p=profile: optimum(p, c)) for c in (*flat, two, three)]
        yield f"{layers:,}", *(f"{seconds:.2f}" for seconds in times)


def chain(count: int) -> Profile:
    chance = random.Random(0)
    layers = tuple(random_layer(chance, number) for number in range(count))
    return Profile("chain", ModelGraph.chain(layers), 1)


def random_layer(chance: random.Random, number: int) -> Layer:
    return Layer(
        f"layer{number}",
        "Linear",
        chance.uniform(1e-4, 1e-2),
        chance.uniform(1e-4, 2e-2),
        int(chance.uniform(1e5, 1e7)),
        int(chance.uniform(1e4, 1e7)),
    )


WIDE_HEAD = ["layers", "branches", "devices", "gap", "CPU s"]


def wide() -> Iterator[Sequence[str]]:
    """Blocks of four branches, ten layers each, one after another: each has 14,641 ideals."""
    for blocks in (5, 12, 25):
        profile = branching(blocks)
        cluster = Cluster((Level(8, 1e10), Level(8, 1e9)))
        found = optimum(profile, cluster)
        took = cpu(lambda p=profile, c=cluster: optimum(p, c))
        yield str(len(profile.layers)), "4", "64", f"{found.gap:.1%}", f"{took:.2f}"


def branching(blocks: int, width: int = 4, length: int = 10) -> Profile:
    chance, edges, count = random.Random(1), [], 1
    for _ in range(blocks):
        start, end = count - 1, count + width * length
        for branch in range(width):
            inside = range(count + branch * length, count + (branch + 1) * length)
            path = [start, *inside, end]
            edges += list(pairwise(path))
        count = end + 1
    layers = tuple(random_layer(chance, number) for number in range(count))
    return Profile("branching", ModelGraph(layers, tuple(sorted(edges))), 1)


if __name__ == "__main__":
    main()
