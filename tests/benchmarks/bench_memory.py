"""Peak memory of each rank beside the planner's prediction, schedule by schedule.

    python -m tests.benchmarks.bench_memory [--models vgg,transformer] [--write]

Every schedule gets fresh processes. Measured is the highest resident memory while it trains.
Predicted is the plan's memory and the base: the measured one of a model that does nothing
("empty": Python, torch, the runtime, the data).
"""

import argparse
import ctypes
import gc
import json
import os
import statistics
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.benchmarks.evidence import evidence  # noqa: E402

CUTS = {"empty": (0, 2, 4), "vgg": (0, 13, 27), "transformer": (0, 46, 92)}
MICROBATCH = {"empty": 1, "vgg": 32, "transformer": 16}
SCHEDULES = ("gpipe", "1f1b-flush", "afp", "zb-h1", "2bw", "pipedream")
BATCH, PORT, MIB = 8, 29_650, 2**20
HEAD = [
    "model",
    "schedule",
    *(
        f"rank {rank}: {what}"
        for rank in (0, 1)
        for what in ("plan", "predicted", "measured", "ratio")
    ),
]


def main() -> None:
    page = evidence("prediction", "bench_memory")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="vgg,transformer")
    parser.add_argument("--schedules", default=",".join(SCHEDULES))
    parser.add_argument("--rank", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.rank:
        rank(*given.rank)
        return
    page.table("memory", HEAD, rows(given.models.split(","), given.schedules.split(",")))


def rows(models: list[str], schedules: list[str]) -> Iterator[list[str]]:
    from tests.benchmarks.ranks import launch

    def told(model: str, name: str) -> list[tuple[float, float]]:
        return [(plan, peak) for plan, peak in launch(__file__, ["--rank", model, name], 2, PORT)]

    bases = [peak for _, peak in told("empty", schedules[0])]
    ratios: list[float] = []
    for model, name in product(models, schedules):
        cells = []
        for base, (plan, peak) in zip(bases, told(model, name), strict=True):
            ratios.append((base + plan) / peak)
            cells += [f"{value / MIB:,.0f}" for value in (plan, base + plan, peak)]
            cells.append(f"{ratios[-1]:.2f}")
        yield [model, name, *cells]
    error = statistics.median(abs(ratio - 1) for ratio in ratios)
    yield [f"median error {error:.0%}", f"{min(ratios):.2f} to {max(ratios):.2f}", *[""] * 8]


def rank(model: str, name: str) -> None:
    """Train two batches twice; rank 0 says (bytes of the plan, resident at most) of each rank."""
    from tests.benchmarks.contestants import Ours, Race
    from workers.runtime.messages.world import join, leave
    from workers.runtime.process import die_with_parent, keep_freed_memory, use_one_thread

    die_with_parent()
    use_one_thread()
    keep_freed_memory()
    world = join()
    file = Path(__file__).parent / "models" / f"{model}.py"
    race = Race(world, file, MICROBATCH[model], BATCH, CUTS[model], CUTS[model])
    race.data(race.microbatch)
    world.barrier()
    lap = Ours(race, name)
    forget_peak()
    for _ in range(2):
        lap(BATCH * 2)
    peak = float(resident("VmHWM"))
    peaks = world.total([peak if r == world.rank else 0.0 for r in range(world.size)])
    if world.rank == 0:
        found = zip(predicted(race, lap), peaks, strict=True)
        print(json.dumps(list(found)), flush=True)
    leave()


def predicted(race, lap) -> tuple[float, ...]:
    """By the planner's model, from a profile taken now."""
    from backend.cluster.presets import local
    from backend.prediction.predict import predict
    from tests.benchmarks.bench_prediction import taken

    return predict(taken(race), local(2), lap.plan).memory_bytes


def forget_peak() -> None:
    """Give what tracing the model has freed back to the kernel, and begin the peak anew."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


def resident(field: str) -> int:
    """Bytes of this process as the kernel counts them: VmRSS now, VmHWM at most."""
    for line in Path(f"/proc/{os.getpid()}/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"no {field} in /proc")


if __name__ == "__main__":
    main()
