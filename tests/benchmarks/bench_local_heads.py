"""Seconds and memory of stages with local losses, predicted from the heads that a profile timed,
beside measured ones.

    python -m tests.benchmarks.bench_local_heads [--models vgg_digits,vgg,gpt_tiny] [--write]

Two stages of even compute by the processes of any run, on a core each. A profile is taken before
and after each model's trainings; predicted is the mean of both, "bare" without the heads. Measured
is the median epoch of one training, and the most that the kernel says of each rank of another. The
row of 1F1B has the same cuts and no heads.
"""

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median

from backend.cluster.presets import this_machine
from backend.planning.catalog import PLANNERS
from backend.planning.local_heads import headed
from backend.planning.plan import Partition, Plan
from backend.prediction.predict import predict
from backend.prediction.prediction import Prediction
from backend.profiles.profile import Profile
from backend.runs.events import Metrics
from backend.runs.request.local_heads import LINEAR, LOW_RANK, SIMILARITY, LocalHead
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import CheckpointSpec, DataSpec, ProfileSpec, TrainSpec
from tests.benchmarks.evidence import evidence
from tests.benchmarks.real_ranks import ROOT, profiled, told, watched

BATCH, EPOCHS, MIB = 4, 3, 2**20
ZOO, MODELS = ROOT / "workers" / "zoo", Path(__file__).parent / "models"
HEAD = [
    *("model", "schedule, head", "bare, ms", "predicted, ms", "measured, ms", "error"),
    *("rank 0: bare, MiB", "predicted", "measured", "ratio", "load"),
]


@dataclass(frozen=True)
class Course:
    """A definition, samples of its microbatch and of an epoch, and the heads it is measured with;
    "" is 1F1B with flush."""

    file: Path
    microbatch: int
    data: DataSpec
    heads: tuple[LocalHead, ...]


COURSES = {
    "vgg_digits": Course(
        ZOO / "vgg_digits.py", 16, DataSpec("digits"), ("", LINEAR, SIMILARITY, LOW_RANK)
    ),
    "vgg": Course(
        MODELS / "vgg.py",
        *(32, DataSpec(samples=512, held_out=0.0), ("", LINEAR, SIMILARITY)),
    ),
    "gpt_tiny": Course(ZOO / "gpt_tiny.py", 16, DataSpec(), ("", LOW_RANK, LINEAR)),
}


def main() -> None:
    page = evidence("local-losses", "bench_local_heads")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(COURSES))
    given = parser.parse_args()
    page.table("local-heads", HEAD, rows(given.models.split(",")))


def rows(models: list[str]) -> Iterator[list[str]]:
    for model in models:
        course = COURSES[model]
        how = ProfileSpec(1, course.microbatch, repetitions=10)
        before = profiled(course.file, how)
        cut = PLANNERS["gpipe-balanced"].plan(before, this_machine(2))
        found = [(head, *measured(course, before, cut, head)) for head in course.heads]
        profiles = before, profiled(course.file, how)
        for head, seconds, peak, load in found:
            plan = plan_of(course, cut, head)
            mine = [predicted(each, plan, head) for each in profiles]
            bare = [predicted(without_heads(each), plan, head) for each in profiles]
            guess, room = mean(p.seconds_per_minibatch for p in mine), mean(map(first, mine))
            yield [
                model,
                f"{plan.schedule} {head}".strip(),
                f"{1e3 * mean(p.seconds_per_minibatch for p in bare):.1f}",
                f"{1e3 * guess:.1f}",
                f"{1e3 * seconds:.1f}",
                f"{guess / seconds - 1:+.0%}",
                *(f"{value / MIB:,.1f}" for value in (mean(map(first, bare)), room, peak)),
                f"{room / peak:.2f}",
                f"{load:.1f}",
            ]


def plan_of(course: Course, cut: Partition, head: LocalHead) -> Plan:
    return Plan("bench", cut, "local" if head else "1f1b-flush", course.microbatch, BATCH)


def predicted(profile: Profile, plan: Plan, head: LocalHead) -> Prediction:
    return predict(headed(profile, plan, head), this_machine(2), plan)


def without_heads(profile: Profile) -> Profile:
    return profile.with_layers(replace(each, local_heads=()) for each in profile.layers)


def first(found: Prediction) -> float:
    """Bytes that rank 0 holds, whose stage has a head."""
    return found.memory_bytes[0]


def measured(
    course: Course, profile: Profile, cut: Partition, head: LocalHead
) -> tuple[float, int, float]:
    """Seconds per update, bytes of rank 0 at its peak, and the machine's load meanwhile."""
    spec = TrainSpec(
        1,
        plan_of(course, cut, head),
        data=course.data,
        optimizer=OptimizerSpec("momentum", 0.01),
        epochs=EPOCHS,
        tracing=profile.tracing,
        checkpoints=CheckpointSpec(seconds=0.0),
        local_head=head,
    )
    events = told(spec, course.file).events
    rates = [e.values for e in events if isinstance(e, Metrics) and e.name == "throughput"]
    each = median(value for values in rates for value in values)
    load = os.getloadavg()[0]
    return BATCH * course.microbatch / each, watched(spec, course.file).peaks[0], load


if __name__ == "__main__":
    main()
