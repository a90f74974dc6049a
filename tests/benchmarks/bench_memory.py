"""Peak memory of each rank beside the planner's prediction, schedule by schedule.

    python -m tests.benchmarks.bench_memory [--models empty,vgg,transformer] [--write]

Profiles and trainings run in processes as an agent starts them. Measured is the most that the
kernel says of a rank, from its start to its end. "empty" is a model that does nothing; the median
is that of the others.
"""

import argparse
import statistics
from collections.abc import Iterator
from pathlib import Path

from backend.cluster.presets import local
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.predict import predict
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import CheckpointSpec, DataSpec, ProfileSpec, TrainSpec
from tests.benchmarks.evidence import evidence
from tests.benchmarks.real_ranks import profiled, watched

CUTS = {"empty": (0, 2, 4), "vgg": (0, 13, 27), "transformer": (0, 46, 92)}
MICROBATCH = {"empty": 1, "vgg": 32, "transformer": 16}
SCHEDULES = ("gpipe", "1f1b-flush", "afp", "zb-h1", "2bw", "pipedream")
BATCH, MIB = 8, 2**20
RANK = ("predicted", "process", "measured", "ratio")
HEAD = ["model", "schedule", *(f"rank {rank}: {what}" for rank in (0, 1) for what in RANK)]


def main() -> None:
    page = evidence("prediction", "bench_memory")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="empty,vgg,transformer")
    parser.add_argument("--schedules", default=",".join(SCHEDULES))
    given = parser.parse_args()
    page.table("memory", HEAD, rows(given.models.split(","), given.schedules.split(",")))


def rows(models: list[str], schedules: list[str]) -> Iterator[list[str]]:
    ratios: list[float] = []
    for model in models:
        file = Path(__file__).parent / "models" / f"{model}.py"
        profile = profiled(file, ProfileSpec(1, MICROBATCH[model], repetitions=8))
        first, cut, stop = CUTS[model]
        partition = Partition((Stage(first, cut, (0,)), Stage(cut, stop, (1,))))
        for name in schedules:
            plan = Plan("bench", partition, name, MICROBATCH[model], BATCH)
            spec = TrainSpec(
                1,
                plan,
                data=DataSpec(samples=2 * BATCH * MICROBATCH[model], held_out=0.0),
                optimizer=OptimizerSpec("momentum", 0.001),
                epochs=2,
                tracing=profile.tracing,
                checkpoints=CheckpointSpec(seconds=0.0),
            )
            needs = predict(profile, local(2), plan).memory_bytes
            cells = []
            for need, peak in zip(needs, watched(spec, file).peaks, strict=True):
                if model != "empty":
                    ratios.append(need / peak)
                cells += [f"{value / MIB:,.0f}" for value in (need, profile.process_bytes, peak)]
                cells.append(f"{need / peak:.2f}")
            yield [model, name, *cells]
    if not ratios:
        return
    error = statistics.median(abs(ratio - 1) for ratio in ratios)
    ends = f"{min(ratios):.2f} to {max(ratios):.2f}"
    yield [f"median error {error:.0%}", ends, *[""] * (2 * len(RANK))]


if __name__ == "__main__":
    main()
