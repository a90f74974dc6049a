"""Layers split by channels over two replicas beside copied ones: predicted and measured.

    python -m tests.benchmarks.bench_splits [--networks 1gbit] [--models wide] [--write]

Data parallelism on two processes under 1F1B with flush, in turns in one launch for each model and
link. A profile is taken before and after each round, on both processes at once; predictions are
means over these. The last column says whether planning (`--split-channels`) would split on that
link, by the first profile. Bytes are those at the interfaces per minibatch, headers included.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import mean, median

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from backend.cluster.cluster import Cluster  # noqa: E402
from backend.cluster.presets import this_machine  # noqa: E402
from backend.planning.channels.layer_split import LayerSplit  # noqa: E402
from backend.planning.channels.types import LayerType  # noqa: E402
from backend.planning.plan import Partition, Plan, Stage  # noqa: E402
from backend.prediction.channel_splits import with_splits  # noqa: E402
from backend.prediction.predict import predict  # noqa: E402
from backend.prediction.question import Question  # noqa: E402
from backend.profiles.profile import Profile  # noqa: E402
from tests.benchmarks.evidence import evidence  # noqa: E402
from tests.benchmarks.networks import available, network, speed  # noqa: E402
from tests.benchmarks.ranks import end, launch  # noqa: E402

MICROBATCH, BATCH, MICROBATCHES, PORT, MIB = 32, 4, 32, 29_760, 2**20
SPLITS = {
    "wide": {"0": "output channels", "2": "input channels"},
    "vocabulary": {"words": "input channels", "scores": "output channels"},
}
"""Per model the layers that are split, and how."""
HEAD = [
    "model, link",
    "copied: predicted, ms",
    "measured",
    "split: predicted, ms",
    "measured",
    "gain predicted",
    "gain measured",
    "MiB sent, copied / split",
    "planning splits",
    "load",
]


def main() -> None:
    page = evidence("shares", "bench_splits")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", default="loopback,1gbit")
    parser.add_argument("--models", default=",".join(SPLITS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rank", type=json.loads, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.rank:
        return rank(given)
    if given.networks != "loopback" and not available():
        raise SystemExit("no right to make network namespaces here: use --networks loopback")
    page.table("splits", HEAD, rows(given))
    return None


def rows(given: argparse.Namespace) -> Iterator[list[str]]:
    for named in given.networks.split(","):
        for model in given.models.split(","):
            with network(named) as where:
                told = {"model": model, "network": named, "interface": where.interface}
                arguments = ["--rank", json.dumps(told), "--rounds", str(given.rounds)]
                found = launch(__file__, arguments, 2, PORT, where)
            yield cells(f"{model}, {named}", found)


def cells(name: str, found: dict) -> list[str]:
    both = [found["copied"], found["split"]]
    pairs = [cell for each in both for cell in (ms(each["predicted"]), ms(each["measured"]))]
    (told, old), (told_split, split) = ((e["predicted"], e["measured"]) for e in both)
    gains = [before / after for before, after in zip(old, split, strict=True)]
    sent = " / ".join(f"{median(each['sent']) / MIB:.1f}" for each in both)
    return [
        name,
        *pairs,
        f"{median(told) / median(told_split):.2f}x",
        f"{median(gains):.2f}x ({min(gains):.2f}-{max(gains):.2f})",
        sent,
        "yes" if found["planned"] else "no",
        f"{os.getloadavg()[0]:.1f}",
    ]


def ms(seconds: list[float]) -> str:
    return f"{median(seconds) * 1e3:.0f}"


def rank(given: argparse.Namespace) -> None:
    """One process: both plans in turns, round by round."""
    from tests.benchmarks.bench_prediction import measured, profile
    from tests.benchmarks.bench_runtime import sent
    from tests.benchmarks.contestants import Ours, Race
    from tests.benchmarks.on_a_clock import PAYLOAD
    from workers.runtime.messages.world import join, leave
    from workers.runtime.process import die_with_parent, keep_freed_memory, use_one_thread

    die_with_parent()
    use_one_thread()
    keep_freed_memory()
    world, model = join(), given.rank["model"]
    course = Race(world, ROOT / f"tests/benchmarks/models/{model}.py", MICROBATCH, BATCH, (), ())
    before, cluster = profile(course), cluster_on(given.rank["network"], PAYLOAD)
    plans = both(before, model)
    running = {name: Ours(course, plan) for name, plan in plans.items()}
    found: dict = {name: {"predicted": [], "measured": [], "sent": []} for name in plans}
    found["planned"] = is_planned(before, cluster, plans["copied"])
    for lap in running.values():
        lap(2 * BATCH)
    for _ in range(given.rounds):
        now = {}
        for name, lap in running.items():
            first = sent(given.rank["interface"])
            now[name] = measured(lap)
            moved = sum(world.total([float(sent(given.rank["interface"]) - first)]))
            share = 1 if given.rank["network"] != "loopback" else 0.5  # both see one interface
            found[name]["sent"].append(share * moved * BATCH / MICROBATCHES)
        after = profile(course)
        for name, seconds in now.items():
            told = (predict(each, cluster, plans[name]) for each in (before, after))
            found[name]["predicted"].append(mean(each.seconds_per_minibatch for each in told))
            found[name]["measured"].append(seconds)
        before = after
    leave()
    end(found if world.rank == 0 else None)


def both(profile: Profile, model: str) -> dict[str, Plan]:
    """The plans with copied and with split layers."""
    cut = Partition((Stage(0, len(profile.layers), (0, 1)),))
    copied = Plan("bench", cut, "1f1b-flush", MICROBATCH, BATCH)
    splits = tuple(LayerSplit(name, LayerType(kind)) for name, kind in SPLITS[model].items())
    return {"copied": copied, "split": replace(copied, splits=splits)}


def cluster_on(link: str, payload: float) -> Cluster:
    """This machine's cores behind that link, of whose bytes so many are ours."""
    here, bandwidth = this_machine(2), speed(link)
    if bandwidth is None:
        return here
    return replace(here, levels=(replace(here.levels[0], bandwidth=bandwidth * payload),))


def is_planned(profile: Profile, cluster: Cluster, copied: Plan) -> bool:
    question = Question(profile, cluster, batch=BATCH, split_channels=True)
    return bool(with_splits(question, question.predict(copied)).plan.splits)


if __name__ == "__main__":
    main()
