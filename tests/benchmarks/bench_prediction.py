"""Predicted against measured seconds per update, over models, cuts and schedules.

    python tests/benchmarks/bench_prediction.py [--rounds 3] [--models lstm]

Both ranks profile at once, as they will train at once. A profile is taken again before each
round of measurements, so that a machine that becomes busy slows both down alike. The links are
those of the preset of this machine.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

MODELS = {"lstm": 8, "transformer": 4, "vgg": 8}
"""Samples per microbatch."""
SCHEDULES = ("pipedream", "2bw", "1f1b-flush", "gpipe", "afp", "zb-h1", "interleaved")
BATCH, MICROBATCHES, PORT = 8, 32, 29_645


def main() -> None:
    from tests.benchmarks.ranks import launch

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.rank:
        rank(given.rounds, given.models.split(","))
        return
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    arguments = ["--rank", "--rounds", str(given.rounds), "--models", given.models]
    rows = launch(__file__, arguments, 2, PORT)
    print(f"{'model':14}{'schedule':14}{'predicted, ms':>14}{'measured, ms':>14}{'error':>8}")
    for model, name, predicted, measured, error in rows:
        print(f"{model:14}{name:14}{predicted * 1e3:>14.1f}{measured * 1e3:>14.1f}{error:>8.0%}")
    errors = sorted(row[-1] for row in rows)
    print(f"{len(errors)} combinations, median error {median(errors):.0%}, ", end="")
    print(f"largest {errors[-1]:.0%}; load {os.getloadavg()[0]:.1f}")


def rank(rounds: int, models: list[str]) -> None:
    from tests.benchmarks.contestants import Ours, Race, cuts
    from workers.runtime.process import die_with_parent, keep_freed_memory, use_one_thread
    from workers.runtime.world import join, leave

    die_with_parent()
    use_one_thread()
    keep_freed_memory()
    world = join()
    rows = []
    for model in models:
        microbatch = MODELS[model]
        file = Path(__file__).parent / "models" / f"{model}.py"
        course = Race(world, file, microbatch, BATCH, (), ())
        found = [cuts(course, None, parts) for parts in (2, 4)]
        agreed = [tuple(int(world.agreed(b)) for b in each) for each in found]
        course = Race(world, file, microbatch, BATCH, *agreed)
        running = {name: Ours(course, name) for name in SCHEDULES}
        pairs: dict[str, list[tuple[float, float]]] = {name: [] for name in SCHEDULES}
        for turn in range(rounds + 1):
            for name, lap in running.items():
                pair = compare(course, lap)
                if turn:  # the first warms up
                    pairs[name].append(pair)
        rows += [(model, name, *summary(found)) for name, found in pairs.items()]
    if world.rank == 0:
        print(json.dumps(rows))
    leave()


def compare(course, lap) -> tuple[float, float]:
    """Seconds per update: predicted from a profile of this moment, and measured."""
    from backend.cluster.presets import local
    from backend.prediction.predict import predict

    predicted = predict(profile(course), local(2), lap.plan).seconds_per_minibatch
    steady = lap(MICROBATCHES).steady
    return predicted, steady * lap.plan.batch


def summary(pairs: list[tuple[float, float]]) -> tuple[float, float, float]:
    """Medians, and the median over rounds of the relative error."""
    predicted, measured = (median(values) for values in zip(*pairs, strict=True))
    return predicted, measured, median(abs(p / m - 1) for p, m in pairs)


def profile(course):
    """Rank 0's profile of this moment, taken while the other ranks profile too."""
    import torch.distributed as dist

    from backend.codec import from_json, to_json
    from backend.profiles.profile import Profile
    from backend.runs.spec import ProfileSpec
    from workers.profiler.main import profiled

    spec = ProfileSpec(1, course.microbatch, repetitions=5)
    found = profiled(course.file.stem, course.file, spec, _Silent())
    told = [to_json(Profile, found)]
    dist.broadcast_object_list(told, src=0)
    return from_json(Profile, told[0])


class _Silent:
    """A reporter that says nothing."""

    def __call__(self, event) -> None:
        pass

    def log(self, text: str) -> None:
        pass

    def started(self) -> None:
        pass


if __name__ == "__main__":
    main()
