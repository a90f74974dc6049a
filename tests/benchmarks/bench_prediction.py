"""Predicted against measured seconds per minibatch, over models, schedules and ranks.

    python -m tests.benchmarks.bench_prediction [--rounds 1] [--models lstm] [--ranks 2,4] [--write]

A profile is taken before and after each measurement, on as many ranks at once as there are cores,
because that many will compute at once; the prediction is the mean of both, so a machine that
changes its speed meanwhile changes both sides alike. With more ranks than cores the prediction lets
them take turns. The links are those of the preset of this machine.
"""

import argparse
import faulthandler
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median

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
"""Of a round at most `PATIENCE` seconds."""
Pair = tuple[float, float, float, float]
"""Seconds per minibatch: predicted, the ends of its range, measured."""


HEAD = [
    "ranks",
    "model",
    "schedule",
    "predicted, ms",
    "its range",
    "measured, ms",
    "error",
    "in it",
]


def main() -> None:
    from tests.benchmarks.evidence import evidence

    found = evidence("prediction", "bench_prediction")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--ranks", default=",".join(map(str, SCHEDULES)))
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.rank:
        rank(given.rounds, given.models.split(","))
        return
    found.table("combinations", HEAD, rows(given))


def rows(given: argparse.Namespace) -> Iterator[list[str]]:
    """One per combination, and one for each number of ranks and for all."""
    from tests.benchmarks.ranks import launch

    arguments = ["--rank", "--rounds", str(given.rounds), "--models", given.models]
    every: list[tuple[float, bool]] = []
    for size in map(int, given.ranks.split(",")):
        found = []
        for model, name, predicted, low, high, measured, error in launch(
            __file__, arguments, size, PORT
        ):
            found.append((abs(error), low <= measured <= high))
            cells = ms(predicted), f"{ms(low)} to {ms(high)}", ms(measured), f"{error:+.0%}"
            yield [str(size), model, name, *cells, "yes" if found[-1][1] else "no"]
        yield whole(str(size), found)
        every += found
    yield whole("all", every)


def ms(seconds: float) -> str:
    return f"{seconds * 1e3:.1f}"


def whole(ranks: str, found: list[tuple[float, bool]]) -> list[str]:
    """Of several combinations the median error, the largest, and how many were in their range."""
    errors = [error for error, _ in found]
    what = f"median {median(errors):.1%}, largest {max(errors):.0%}"
    inside = sum(is_inside for _, is_inside in found)
    return [ranks, f"{len(found)} combinations", "", "", "", "", what, f"{inside} of {len(found)}"]


def rank(rounds: int, models: list[str]) -> None:
    from tests.benchmarks.ranks import end
    from workers.runtime.messages.world import join, leave
    from workers.runtime.process import die_with_parent, keep_freed_memory, use_one_thread

    die_with_parent()
    use_one_thread()
    keep_freed_memory()
    world = join()
    rows = []
    for model in models:
        pairs = raced(world, model, rounds)
        rows += [(model, name, *summary(found)) for name, found in pairs.items()]
    leave()
    end(rows if world.rank == 0 else None)


def raced(world, model: str, rounds: int) -> dict[str, list[Pair]]:
    """Per schedule what is predicted and measured in each round."""
    from tests.benchmarks.contestants import Ours, Race, cuts, plan_of

    file = Path(__file__).parent / "models" / f"{model}.py"
    course = Race(world, file, MODELS[model], BATCH, (), ())
    best = [cuts(course, None, parts) for parts in (world.size, 4)]
    agreed = [tuple(int(world.agreed(b)) for b in each) for each in best]
    course = Race(world, file, MODELS[model], BATCH, *agreed)
    running = {name: Ours(course, plan_of(course, name)) for name in SCHEDULES[world.size]}
    for lap in running.values():
        lap(BATCH * 2)
    pairs: dict[str, list[Pair]] = {name: [] for name in running}
    for _ in range(rounds):
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        before = profile(course)
        for name, lap in running.items():
            seconds = measured(lap)
            after = profile(course)
            both = zip(predicted(before, lap), predicted(after, lap), strict=True)
            pairs[name].append((*map(mean, both), seconds))
            before = after
    return pairs


def predicted(profile, lap) -> tuple[float, float, float]:
    """Seconds per minibatch, and their range."""
    from backend.cluster.presets import this_machine
    from backend.prediction.predict import predict

    found = predict(profile, this_machine(lap.race.world.size), lap.plan)
    return found.seconds_per_minibatch, *found.seconds_range


def measured(lap, microbatches: int = MICROBATCHES) -> float:
    """The same slope that a prediction is read from: the second half at the last stage."""
    from backend.pipeline.timeline import Timeline
    from backend.prediction.shapes import microbatch_unit
    from backend.prediction.steady import seconds_per_microbatch

    lap(microbatches)
    shape, world = lap.program.shape, lap.race.world
    group = shape.group_of(shape.num_stages - 1)
    timeline = Timeline.of(tuple(lap.recorder.spans))
    unit, is_last = microbatch_unit(lap.plan), world.rank in group
    mine = seconds_per_microbatch(timeline, shape, unit) if is_last else 0.0
    return world.total([mine])[0] / len(group) * lap.plan.batch  # the mean of its replicas


def summary(pairs: list[Pair]) -> tuple[float, ...]:
    """Medians, and the median over rounds of the relative error."""
    error = median(predicted / measured - 1 for predicted, *_, measured in pairs)
    return *(median(values) for values in zip(*pairs, strict=True)), error


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
