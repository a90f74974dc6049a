"""Shares where ranks have a part of a core, as slower devices would be: predicted and measured.

    python -m tests.benchmarks.bench_slow_ranks [--rounds 3] [--write]

A transformer, data parallel under 1F1B with flush, with equal shares and with shares by speed, in
turns in one launch of real processes for each cluster. Linux lets all but the first rank compute
for that part of every 10 ms (a control group of the cpu controller, which needs root). The model
is profiled on the first rank, before and after each round; predictions are means of both.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import mean, median

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from backend.cluster.cluster import Cluster, Device, Level  # noqa: E402
from backend.cluster.presets import LOOPBACK_LATENCY, this_machine  # noqa: E402
from backend.codec import from_json, to_json  # noqa: E402
from backend.planning.plan import Partition, Plan, Stage  # noqa: E402
from backend.planning.sharing_out import shared_out  # noqa: E402
from backend.prediction.predict import predict  # noqa: E402
from backend.profiles.profile import Profile  # noqa: E402
from tests.benchmarks.evidence import evidence  # noqa: E402
from tests.benchmarks.networks import Network  # noqa: E402
from tests.benchmarks.ranks import LOCAL, end, launch  # noqa: E402

SPEEDS = ((1.0, 0.5), (1.0, 0.25, 0.25))
MODEL, MICROBATCH, BATCH, MICROBATCHES, PORT = "transformer", 4, 12, 48, 29_770
GROUPS, PERIOD = Path("/sys/fs/cgroup/cpu"), 10_000
"""Where control groups are made, and the microseconds of which a rank gets its part."""
MOST_SHARES = 262_144
"""That other work takes none of a rank's part: a process in a group has no priority of its own."""
HEAD = [
    "speeds",
    "shares",
    "formula",
    "predicted gain",
    "measured gain",
    "equal: measured / predicted",
    "shares: measured / predicted",
    "load",
]


def main() -> None:
    page = evidence("shares", "bench_slow_ranks")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--speeds", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.speeds:
        return rank(given.rounds, tuple(map(float, given.speeds.split(","))))
    if not os.access(GROUPS / "cpu.cfs_quota_us", os.W_OK):
        raise SystemExit(f"no right to make control groups in {GROUPS}: run it as root")
    page.table("slow-ranks", HEAD, rows(given.rounds))
    return None


def rows(rounds: int) -> Iterator[list[str]]:
    for speeds in SPEEDS:
        told = ["--rounds", str(rounds), "--speeds", ",".join(map(str, speeds))]
        with slowed(speeds) as where:
            label, predicted, measured = launch(__file__, told, len(speeds), PORT, where)
        (equal, shares), (equal_took, shares_took) = predicted, measured
        gains = [before / after for before, after in zip(equal_took, shares_took, strict=True)]
        yield [
            ", ".join(f"{speed:g}" for speed in speeds),
            label,
            f"{sum(speeds) / (len(speeds) * min(speeds)):.2f}x",
            f"{median(equal) / median(shares):.2f}x",
            f"{median(gains):.2f}x ({min(gains):.2f}-{max(gains):.2f})",
            *(
                f"{median(a / b for a, b in zip(*each, strict=True)):.2f}"
                for each in ((equal, equal_took), (shares, shares_took))
            ),
            f"{os.getloadavg()[0]:.0f}",
        ]


@contextmanager
def slowed(speeds: Sequence[float]) -> Iterator[Network]:
    """This machine, on which each rank but the first has its part of a core; as before
    afterwards."""
    made = [GROUPS / f"stageflow-{os.getpid()}-{number}" for number in range(1, len(speeds))]
    enter = ("sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"')
    try:
        for folder, speed in zip(made, speeds[1:], strict=True):
            folder.mkdir()
            (folder / "cpu.cfs_period_us").write_text(str(PERIOD))
            (folder / "cpu.shares").write_text(str(MOST_SHARES))
            (folder / "cpu.cfs_quota_us").write_text(str(round(PERIOD * speed)))
        yield replace(LOCAL, prefix=((), *((*enter, str(each)) for each in made)))
    finally:
        for folder in made:
            folder.rmdir()


def rank(rounds: int, speeds: tuple[float, ...]) -> None:
    """One process: both plans in turns, round by round."""
    from tests.benchmarks.bench_prediction import measured
    from tests.benchmarks.contestants import Ours, Race
    from workers.runtime.messages.world import join, leave
    from workers.runtime.process import die_with_parent, keep_freed_memory, use_one_thread

    die_with_parent()
    use_one_thread()
    keep_freed_memory()
    world, file = join(), ROOT / f"tests/benchmarks/models/{MODEL}.py"
    course = Race(world, file, MICROBATCH, BATCH, (), ())
    profiles, cluster = [profile(course)], cluster_of(speeds)
    plans = both(profiles[0], cluster)
    running = [Ours(course, plan) for plan in plans]
    for lap in running:
        lap(2 * BATCH)
    took: list[list[float]] = [[], []]
    for _ in range(rounds):
        for lap, seconds in zip(running, took, strict=True):
            seconds.append(measured(lap, MICROBATCHES))
        profiles.append(profile(course))
    told = [
        [
            mean(predict(each, cluster, plan).seconds_per_minibatch for each in pair)
            for pair in pairwise(profiles)
        ]
        for plan in plans
    ]
    leave()
    end([plans[1].partition.label, told, took] if world.rank == 0 else None)


def profile(course) -> Profile:
    """The first rank's, while the others wait."""
    import torch.distributed as dist

    from tests.benchmarks.bench_prediction import taken

    told = [to_json(Profile, taken(course)) if course.world.rank == 0 else b""]
    dist.broadcast_object_list(told, src=0)
    found: Profile = from_json(Profile, told[0])
    return found


def cluster_of(speeds: tuple[float, ...]) -> Cluster:
    """This machine's links; each device is a rank's part of a core, so none waits for another's."""
    each = tuple(Device(f"x{speed:g}", speed=speed) for speed in speeds)
    bandwidth = this_machine(len(speeds)).levels[0].bandwidth
    return Cluster((Level(len(speeds), bandwidth, LOOPBACK_LATENCY),), each[0], each)


def both(profile: Profile, cluster: Cluster) -> tuple[Plan, Plan]:
    """With equal shares and with shares by speed."""
    cut = Partition((Stage(0, len(profile.layers), tuple(range(cluster.num_devices))),))
    equal = Plan("bench", cut, "1f1b-flush", MICROBATCH, BATCH)
    return equal, shared_out(equal, cluster)


if __name__ == "__main__":
    main()
