"""The paper's plans on the paper's cluster, run by 16 real processes on emulated devices.

    python tests/benchmarks/bench_emulated.py [--models vgg16,alexnet] [--seconds 8]

Computing is waiting (the published profiles' seconds); the program, the messages, the sums of
gradients and the updates are those of every run, at a pace that keeps their ratio to the
computing (docs/guide/emulation.md). Needs the published profiles beside the
repository (../shared/profiles). `--seconds` is about what each plan runs for.
"""

import argparse
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "unit" / "planning")]

from published import FOLDER, at_batch, load  # noqa: E402

from backend.cluster.presets import cluster_a  # noqa: E402
from backend.pipeline.links import ServerLinks  # noqa: E402
from backend.pipeline.lower import lower  # noqa: E402
from backend.pipeline.schedules.catalog import schedule  # noqa: E402
from backend.pipeline.simulate import simulate  # noqa: E402
from backend.pipeline.timeline import Timeline  # noqa: E402
from backend.planning.baselines import data_parallel, straight  # noqa: E402
from backend.planning.pipedream.planner import optimum  # noqa: E402
from backend.planning.plan import Partition, Plan  # noqa: E402
from backend.prediction.durations import PlanDurations  # noqa: E402
from backend.prediction.predict import predict  # noqa: E402
from backend.prediction.shapes import microbatch_unit, steady_shape, with_one_way  # noqa: E402
from backend.prediction.steady import seconds_per_microbatch  # noqa: E402
from backend.profiles.profile import Profile  # noqa: E402
from backend.runs.job import Emulation  # noqa: E402
from tests.benchmarks.emulated_jobs import FILE, emulated_job, measured_timeline  # noqa: E402
from tests.benchmarks.ranks import launch  # noqa: E402

PAPER = {
    "vgg16": ("VGG-16", 64, "15-1", "5.28x"),
    "alexnet": ("AlexNet", 256, "15-1", "4.92x"),
    "resnet50": ("ResNet-50", 128, "16", "1x"),
    "gnmt_large": ("GNMT-16", None, "straight", ""),
}
"""Name, microbatch (None: the profile's), plan and speed-up over data parallelism on 16 GPUs of
Cluster-A (Narayanan et al., SOSP 2019, table 1; "" where we have no source for it)."""
CLUSTER = cluster_a()
RANK = Path(__file__).with_name("emulated_rank.py")
PORT = 29_700


@dataclass(frozen=True)
class Measured:
    """Samples per second of the emulated devices, what a prediction says, and what the simulator
    says where the devices of a server share its wire to the others, as they do here."""

    title: str
    partition: Partition
    measured: float
    simulated: float
    shared: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(PAPER))
    parser.add_argument("--seconds", type=float, default=8.0)
    given = parser.parse_args()
    if not FOLDER.is_dir():
        return print(f"no published profiles at {FOLDER}: nothing to run")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    print("| model | plan | paper | predicted | shared wires | emulated | of shared |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for model in given.models.split(","):
        table(model, given.seconds)
    return None


def table(model: str, seconds: float) -> None:
    """One row per plan: speed-ups over data parallelism, which comes first."""
    name, batch, plan, factor = PAPER[model]
    profile = load(model) if batch is None else at_batch(load(model), batch)
    rows = race(profile, seconds)
    base = rows[0]
    for row in rows:
        mark = factor if row.partition.label == plan or row.title == plan else ""
        print(
            f"| {name} | {row.title}: {row.partition.label} | {mark} | "
            f"{row.simulated / base.simulated:.2f}x | {row.shared / base.shared:.2f}x | "
            f"{row.measured / base.measured:.2f}x | {row.measured / row.shared:.3f} |",
            flush=True,
        )


def race(profile: Profile, seconds: float) -> list[Measured]:
    """Data parallelism, the planner's plan, the best straight pipeline."""
    partitions = {
        "data parallel": data_parallel(profile, CLUSTER),
        "pipedream": optimum(profile, CLUSTER).partition,
        "straight": straight(profile, CLUSTER),
    }
    known: dict[Partition, str] = {}
    for title, partition in partitions.items():
        known.setdefault(partition, title)
    with tempfile.TemporaryDirectory(prefix="stageflow-emulated-") as folder:
        jobs = {p: job(profile, p, seconds, Path(folder) / t) for p, t in known.items()}
        for size in {partition.num_devices for partition in jobs}:
            files = [str(at / FILE) for p, at in jobs.items() if p.num_devices == size]
            launch(str(RANK), files, size, PORT)
        return [result(profile, partition, at) for partition, at in jobs.items()]


def job(profile: Profile, partition: Partition, seconds: float, folder: Path) -> Path:
    """The folder of a job that emulates the plan for about so many seconds, long enough to show
    the steady state."""
    plan = Plan("", partition, "pipedream", profile.microbatch)
    samples = steady_shape(plan).num_microbatches * profile.microbatch
    rate = predict(profile, CLUSTER, plan).samples_per_second
    emulation = Emulation(profile, CLUSTER, seconds * rate / samples)
    return emulated_job(plan, emulation, folder)


def result(profile: Profile, partition: Partition, folder: Path) -> Measured:
    """By the rules of the prediction: the slope over the second half at the last stage."""
    plan = Plan("", partition, "pipedream", profile.microbatch)
    timeline = measured_timeline(folder)
    simulated = predict(profile, CLUSTER, plan).samples_per_second
    measured, shared = (rate(plan, found) for found in (timeline, on_shared_wires(profile, plan)))
    return Measured(folder.name, partition, measured, simulated, shared)


def rate(plan: Plan, timeline: Timeline) -> float:
    each = seconds_per_microbatch(timeline, steady_shape(plan), microbatch_unit(plan))
    return plan.microbatch / each


def on_shared_wires(profile: Profile, plan: Plan) -> Timeline:
    durations = PlanDurations(profile, plan.partition, CLUSTER)
    inner, outer = CLUSTER.levels
    servers = tuple(device // inner.count for device in durations.devices)
    shape = with_one_way(steady_shape(plan), profile, plan.partition)
    program = lower(schedule(plan.schedule), shape)
    return simulate(program, durations, ServerLinks(servers, outer.latency))


if __name__ == "__main__":
    main()
