"""Predicted against measured seconds per minibatch, over models, schedules and ranks.

    python tests/benchmarks/bench_prediction.py [--rounds 1] [--models lstm] [--ranks 2,4]

A profile is taken before each round of measurements, on as many ranks at once as there are
cores, because that many will compute at once; so a machine that becomes busy slows both down
alike. With more ranks than cores the prediction lets them take turns. The links are those of
the preset of this machine.
"""

import argparse
import faulthandler
import os
import sys
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

MODELS = {"lstm": 8, "transformer": 4, "vgg": 8}
"""Samples per microbatch."""
SCHEDULES = {
    2: ("pipedream", "2bw", "1f1b-flush", "gpipe", "afp", "zb-h1", "interleaved"),
    4: ("pipedream", "1f1b-flush", "gpipe"),
}
"""Per number of ranks."""
BATCH, MICROBATCHES, PORT, PATIENCE = 8, 32, 29_645, 600


def main() -> None:
    from tests.benchmarks.ranks import launch

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--ranks", default=",".join(map(str, SCHEDULES)))
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.rank:
        rank(given.rounds, given.models.split(","))
        return
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    head = f"{'model':14}{'ranks':>5}  {'schedule':14}{'predicted, ms':>14}{'measured, ms':>14}"
    print(f"{head}{'error':>8}")
    arguments = ["--rank", "--rounds", str(given.rounds), "--models", given.models]
    errors = []
    for size in map(int, given.ranks.split(",")):
        for model, name, predicted, measured, error in launch(__file__, arguments, size, PORT):
            place = f"{model:14}{size:>5}  {name:14}{predicted * 1e3:>14.1f}"
            print(f"{place}{measured * 1e3:>14.1f}{error:>8.0%}", flush=True)
            errors.append(abs(error))
    print(f"{len(errors)} combinations, median error {median(errors):.0%}, ", end="")
    print(f"largest {max(errors):.0%}; load {os.getloadavg()[0]:.1f}")


def rank(rounds: int, models: list[str]) -> None:
    from tests.benchmarks.ranks import end
    from workers.runtime.messages.world import join, leave
    from workers.runtime.process import die_with_parent, keep_freed_memory, use_one_thread

    die_with_parent()
    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    use_one_thread()
    keep_freed_memory()
    world = join()
    rows = []
    for model in models:
        pairs = raced(world, model, rounds)
        rows += [(model, name, *summary(found)) for name, found in pairs.items()]
    leave()
    end(rows if world.rank == 0 else None)


def raced(world, model: str, rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Per schedule the (predicted, measured) seconds per minibatch of each round."""
    from tests.benchmarks.contestants import Ours, Race, cuts

    file = Path(__file__).parent / "models" / f"{model}.py"
    course = Race(world, file, MODELS[model], BATCH, (), ())
    best = [cuts(course, None, parts) for parts in (world.size, 4)]
    agreed = [tuple(int(world.agreed(b)) for b in each) for each in best]
    course = Race(world, file, MODELS[model], BATCH, *agreed)
    running = {name: Ours(course, name) for name in SCHEDULES[world.size]}
    for lap in running.values():
        lap(BATCH * 2)
    pairs: dict[str, list[tuple[float, float]]] = {name: [] for name in running}
    for _ in range(rounds):
        found = profile(course)
        for name, lap in running.items():
            pairs[name].append((predicted(found, lap), measured(lap)))
    return pairs


def predicted(profile, lap) -> float:
    from backend.cluster.presets import this_machine
    from backend.prediction.predict import predict

    return predict(profile, this_machine(lap.race.world.size), lap.plan).seconds_per_minibatch


def measured(lap) -> float:
    """The same slope that a prediction is read from: the second half at the last stage."""
    from backend.pipeline.timeline import Timeline
    from backend.prediction.shapes import microbatch_unit
    from backend.prediction.steady import seconds_per_microbatch

    lap(MICROBATCHES)
    shape, world = lap.program.shape, lap.race.world
    is_last = world.rank in shape.group_of(shape.num_stages - 1)
    timeline = Timeline.of(tuple(lap.recorder.spans))
    mine = seconds_per_microbatch(timeline, shape, microbatch_unit(lap.plan)) if is_last else 0.0
    return world.total([mine])[0] * lap.plan.batch


def summary(pairs: list[tuple[float, float]]) -> tuple[float, float, float]:
    """Medians, and the median over rounds of the relative error."""
    predicted, measured = (median(values) for values in zip(*pairs, strict=True))
    return predicted, measured, median(p / m - 1 for p, m in pairs)


def profile(course):
    """Rank 0's profile of this moment, taken on as many ranks at once as there are cores."""
    import torch.distributed as dist

    from backend.codec import from_json, to_json
    from backend.profiles.profile import Profile

    told = [""]
    if course.world.rank < (os.cpu_count() or 1):
        told = [to_json(Profile, taken(course))]
    course.world.barrier()
    dist.broadcast_object_list(told, src=0)
    return from_json(Profile, told[0])


def taken(course):
    """This process's profile of the model, as a profiling run takes it."""
    from backend.runs.request.spec import ProfileSpec
    from workers.profiler.main import profiled

    spec = ProfileSpec(1, course.microbatch, repetitions=8)
    return profiled(course.file.stem, course.file, spec, Silent())


class Silent:
    """A reporter that says nothing."""

    def __call__(self, event) -> None:
        pass

    def log(self, text: str) -> None:
        pass

    def started(self) -> None:
        pass


if __name__ == "__main__":
    main()
