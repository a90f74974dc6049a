"""What the planner's choice of depth and codecs brings: its plan beside the same planner's plan
that runs no further ahead and codes nothing, in turns in one launch of two or four processes.

    python -m tests.benchmarks.bench_choices [--models lstm] [--networks 1gbit] [--write]

Both are planned from one profile, taken in the launch on as many ranks at once as there are cores,
for the link between the ranks. Gains are of samples/s, round by round, over the plain plan's.
"""

import argparse
import faulthandler
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

MODELS = {"vgg": 32, "lstm": 16, "transformer": 8}
"""Samples per microbatch."""
SCHEDULES = {2: ("2bw", "pipedream"), 4: ("2bw",)}
PLANNERS = ("straight", "gpipe-balanced", "even-split")
"""The first whose plan leaves no rank idle is asked."""
BATCH, PORT, PATIENCE = 8, 29_690, 900
HEAD = [
    "model, link, ranks, schedule",
    "cuts",
    "chosen",
    "plain, samples/s",
    "gain predicted",
    "gain measured",
    "load",
]
SAME = "nothing further"


def main() -> None:
    from tests.benchmarks.evidence import evidence
    from tests.benchmarks.networks import available

    kept = evidence("codecs", "bench_choices")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--networks", default="loopback,1gbit,100mbit")
    parser.add_argument("--ranks", default=",".join(map(str, SCHEDULES)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--microbatches", type=int, default=16)
    parser.add_argument("--on", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.on:
        rank(given)
        return
    if given.networks != "loopback" and not available():
        raise SystemExit("no right to make network namespaces here")
    kept.table("choices", HEAD, rows(given))


def rows(given: argparse.Namespace) -> Iterator[list[str]]:
    """One per combination, and one for all."""
    from tests.benchmarks.networks import network
    from tests.benchmarks.ranks import launch

    told = ["--rounds", str(given.rounds), "--microbatches", str(given.microbatches)]
    gains = []
    for size in map(int, given.ranks.split(",")):
        for named in given.networks.split(","):
            for model in given.models.split(","):
                with network(named, size) as where:
                    asked = [*told, "--on", named, "--models", model]
                    found = launch(__file__, asked, size, PORT, where)
                for schedule, cuts, chosen, speed, predicted, laps in found:
                    gains.append(median(laps))
                    yield [
                        f"{model}, {named}, {size}, {schedule}",
                        cuts,
                        chosen,
                        f"{speed:.1f}",
                        f"{predicted:.2f}",
                        f"{gains[-1]:.2f} ({min(laps):.2f}-{max(laps):.2f})",
                        f"{os.getloadavg()[0]:.0f}",
                    ]
    few = sum(gain < 0.98 for gain in gains)
    told_of_all = f"median {median(gains):.2f}, smallest {min(gains):.2f}, {few} below 0.98"
    yield [f"all {len(gains)}", "", "", "", "", told_of_all, ""]


def rank(given: argparse.Namespace) -> None:
    """One rank of the launch for one model on one network."""
    from tests.benchmarks.bench_prediction import profile
    from tests.benchmarks.contestants import Race
    from tests.benchmarks.ranks import end
    from workers.runtime.messages.world import join, leave
    from workers.runtime.process import die_with_parent, keep_freed_memory, use_one_thread

    die_with_parent()
    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    use_one_thread()
    keep_freed_memory()
    world, model = join(), given.models
    file = Path(__file__).parent / "models" / f"{model}.py"
    course = Race(world, file, MODELS[model], BATCH, (), ())
    taken = profile(course)
    found = [raced(course, taken, given, name) for name in SCHEDULES[world.size]]
    leave()
    end(found if world.rank == 0 else None)


def raced(course, profile, given: argparse.Namespace, schedule: str) -> tuple:
    """The cuts, what is chosen, the plain plan's samples/s, and the gains: predicted, and of each
    round, 1 where nothing is chosen."""
    import torch.distributed as dist

    from tests.benchmarks.contestants import Ours

    told = [planned(profile, given.on, course.world.size, schedule)]
    dist.broadcast_object_list(told, src=0)
    (plain, slow), (chosen, fast) = told[0]
    contestants = [Ours(course, plain), Ours(course, chosen)]
    for lap in contestants:
        lap(BATCH * 2)
    laps = []
    for turn in range(given.rounds):
        seconds = {}
        for which in ((0, 1), (1, 0))[turn % 2]:
            seconds[which] = contestants[which](given.microbatches).seconds
        laps.append((seconds[0], seconds[1]))
    samples = given.microbatches * course.microbatch
    gains = [before / after for before, after in laps]
    cuts = [stage.first for stage in plain.partition.stages[1:]]
    said = words(plain, chosen)
    speed = samples / median(before for before, _ in laps)
    gains = [1.0] if said == SAME else gains
    return schedule, ", ".join(map(str, cuts)), said, speed, fast / slow, gains


def planned(profile, network: str, size: int, schedule: str) -> list:
    """The plain plan and the chosen one, each with its predicted samples/s."""
    from dataclasses import replace

    from backend.prediction.answer import rank as ranked
    from backend.prediction.question import Question

    cluster = linked(network, size)
    for planner in PLANNERS:
        plain = Question(profile, cluster, planner, schedule, batch=BATCH, run_ahead=0)
        both = plain, replace(plain, run_ahead=None, codec="auto")
        found = [ranked(question)[0].prediction for question in both]
        if all(len(each.plan.devices) == size for each in found):
            break
    return [(each.plan, each.samples_per_second) for each in found]


def linked(network: str, size: int):
    """The ranks' cluster: this machine's cores, each rank on such a link."""
    from backend.cluster.cluster import Cluster, Device, Level
    from backend.cluster.presets import LOOPBACK_LATENCY, this_machine
    from tests.benchmarks.networks import speed

    bandwidth = speed(network)
    if bandwidth is None:
        return this_machine(size)
    return Cluster((Level(size, bandwidth, LOOPBACK_LATENCY, os.cpu_count()),), Device("cpu"))


def words(plain, chosen) -> str:
    """How the chosen plan differs."""
    said = [f"ahead {chosen.run_ahead}"] if chosen.run_ahead else []
    if any(chosen.codecs):
        said.append(", ".join(name or "none" for name in chosen.codecs))
    if chosen.partition != plain.partition:
        said.append(f"cuts {[stage.first for stage in chosen.partition.stages[1:]]}")
    return "; ".join(said) or SAME


if __name__ == "__main__":
    main()
