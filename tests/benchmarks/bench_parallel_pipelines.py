"""AvgPipe against the best single pipeline where devices wait for messages, on real digits.

    python tests/benchmarks/bench_parallel_pipelines.py [--networks loopback,100mbit] [--epochs 2]

Two hosts train a convolutional network in microbatches of 4 samples; every pipeline adds a process
to each host. N, m and the advance are tuned by the planner from a profile taken here; two pipelines
with the microbatches of the others stand beside it. Samples per second are the median of the
epochs, the accuracy is that after the last one, on held-out digits.
"""

import argparse
import io
import json
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.benchmarks.networks import available, network, speed  # noqa: E402
from tests.benchmarks.ranks import end, launch  # noqa: E402

MODEL, MICROBATCH, BATCH, RATE, PORT = "vgg_digits", 4, 4, 0.02, 29_655
SINGLE = ("gpipe", "1f1b-flush", "afp", "zb-h1", "2bw", "pipedream")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", default="100mbit")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--rank", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.rank:
        rank(given.rank)
    for name in given.networks.split(","):
        if name != "loopback" and not available():
            print(f"{name}: no right to make network namespaces here, left out")
            continue
        print(f"\n{name}\n{'':16}{'N':>3}{'m':>4}{'samples/s':>11}{'accuracy':>10}", flush=True)
        fastest = 0.0
        for label, plan in plans(speed(name) or 2.5e9).items():
            rates, accuracy = trained(plan, name, given.epochs)
            rate = median(rates)
            fastest = max(fastest, rate) if plan.num_pipelines == 1 else fastest
            row = f"{label:16}{plan.num_pipelines:>3}{plan.batch:>4}{rate:>11.0f}{accuracy:>10.1%}"
            print(
                row
                + (f"  {rate / fastest:.2f} of the best single" if plan.num_pipelines > 1 else "")
            )
            sys.stdout.flush()


def plans(bandwidth: float):
    """Every plan on the same cut: single pipelines, the tuned AvgPipe, and two plain pipelines."""
    from backend.cluster.cluster import Cluster, Level
    from backend.planning.plan import Plan
    from backend.prediction.question import Question
    from backend.prediction.search import search
    from backend.runs.request.spec import ProfileSpec
    from tests.benchmarks.bench_prediction import Silent
    from workers import zoo
    from workers.profiler.main import profiled
    from workers.runtime.process import use_one_thread

    use_one_thread()
    file = Path(zoo.__file__).parent / f"{MODEL}.py"
    profile = profiled(MODEL, file, ProfileSpec(1, MICROBATCH, repetitions=8), Silent())
    cluster = Cluster((Level(2, bandwidth, 1e-4),))
    tuned = search("avgpipe", Question(profile, cluster, batch=BATCH)).plan
    cut = tuned.partition
    found = {name: Plan("bench", cut, name, MICROBATCH, BATCH) for name in SINGLE}
    plain = replace(found["afp"], num_pipelines=2)
    return found | {"AvgPipe, tuned": tuned, "AvgPipe, N = 2": plain}


def trained(plan, name: str, epochs: int) -> tuple[list[float], float]:
    """(samples/s of each epoch, accuracy after the last)."""
    from backend.codec import to_json
    from backend.runs.job import Job
    from backend.runs.request.optimizer_spec import OptimizerSpec
    from backend.runs.request.spec import DataSpec, TrainSpec
    from workers import zoo

    optimizer = OptimizerSpec("momentum", RATE)
    batch = plan.batch if plan.schedule != "pipedream" else 1
    spec = TrainSpec(
        1, replace(plan, batch=batch), data=DataSpec("digits"), optimizer=optimizer, epochs=epochs
    )
    file = Path(zoo.__file__).parent / f"{MODEL}.py"
    size = 2 * plan.num_pipelines
    with TemporaryDirectory() as folder, network(name) as where:
        job = Path(folder) / "job.json"
        job.write_bytes(to_json(Job, Job(1, 1, "bench", spec, str(file), folder, size)))
        hosts = replace(where, prefix=where.prefix * plan.num_pipelines)
        told = launch(__file__, ["--rank", str(job)], size, PORT, hosts)
    return told["throughput"], told["accuracy"][-1]


def rank(job_file: Path) -> None:
    """Train as a run does; what the ranks print is read as the supervisor would."""
    from backend.codec import from_json
    from backend.runs.events import Metrics, read_line
    from backend.runs.job import Job
    from workers.runtime.messages.world import join, leave
    from workers.runtime.process import die_with_parent, keep_freed_memory, use_one_thread
    from workers.runtime.reports.reporter import Reporter
    from workers.runtime.run import train

    die_with_parent()
    use_one_thread()
    keep_freed_memory()
    world, said = join(), io.StringIO()
    with redirect_stdout(said):
        train(from_json(Job, job_file.read_bytes()), world, Reporter(world.rank))
    events = [read_line(line) for line in said.getvalue().splitlines()]
    found = {
        name: [v for e in events if isinstance(e, Metrics) and e.name == name for v in e.values]
        for name in ("throughput", "accuracy")
    }
    told = gathered(world, found)
    leave()
    end(told if world.rank == 0 else None)


def gathered(world, found: dict[str, list[float]]) -> dict[str, list[float]]:
    """What the one rank that reports has found, on every rank."""
    import torch.distributed as dist

    all_of_them: list = [None] * world.size
    dist.all_gather_object(all_of_them, found)
    return max(all_of_them, key=lambda one: len(json.dumps(one)))


if __name__ == "__main__":
    main()
