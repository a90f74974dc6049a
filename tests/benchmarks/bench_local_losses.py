"""What local losses learn beside backpropagation: accuracy after equal epochs, and what an epoch
takes in seconds and bytes, by the processes of any run.

    python -m tests.benchmarks.bench_local_losses [--network 100mbit] [--write]

Rows: a model in so many stages, cut where its profile says, under a schedule. Every contestant has
the optimizer, rate, seeds and cuts of the others; none is tuned. Bytes are those of the messages in
training, as they are predicted (and counted, to the byte: tests/contract), and beside them those at
the interfaces of all ranks, with headers, evaluation and the model that is saved at the end. The
range over the seeds is in brackets.
"""

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import mean, median

from backend.cluster.cluster import Cluster, Level
from backend.pipeline.schedules.catalog import schedule as schedule_named
from backend.planning.catalog import PLANNERS
from backend.planning.plan import Partition, Plan
from backend.prediction.cut_messages import CutMessages
from backend.profiles.profile import Profile
from backend.runs.events import ACCURACY, Metrics, of_stage
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import DataSpec, ProfileSpec, TrainSpec
from tests.benchmarks.evidence import evidence
from tests.benchmarks.networks import available, network
from tests.benchmarks.real_ranks import ROOT, Told, profiled, told

MICROBATCH, BATCH = 16, 4


@dataclass(frozen=True)
class Course:
    """A model of the zoo, how it learns, and the heads that are compared."""

    model: str
    data: str
    epochs: int
    rule: OptimizerSpec
    heads: tuple[str, ...]


COURSES = (
    Course("vgg_digits", "digits", 6, OptimizerSpec("adam", 5e-4), ("linear", "similarity")),
    Course("gpt_tiny", "", 5, OptimizerSpec("adam", 1e-3), ("low-rank", "linear")),
)


def main() -> None:
    kept = evidence("local-losses", "bench_local_losses")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(course.model for course in COURSES))
    parser.add_argument("--stages", default="2,4")
    parser.add_argument("--network", default="100mbit")
    parser.add_argument("--planner", default="gpipe-balanced", help="that which cuts")
    parser.add_argument("--epochs", type=int, default=0, help="0: as many as each model has")
    parser.add_argument("--seeds", type=int, default=1)
    given = parser.parse_args()
    if given.network != "loopback" and not available():
        raise SystemExit("no right to make network namespaces here")
    head = ["model, stages, link", "schedule, head", "accuracy, held out", "of stages before"]
    head += ["s per epoch", "MB per epoch", "at interfaces", "load"]
    kept.table("local-losses", head, rows(given))


def rows(given: argparse.Namespace) -> Iterator[list[str]]:
    for course in COURSES:
        if course.model in given.models.split(","):
            file = ROOT / "workers" / "zoo" / f"{course.model}.py"
            profile = profiled(file, ProfileSpec(1, MICROBATCH, repetitions=5))
            course = replace(course, epochs=given.epochs or course.epochs)
            for stages in map(int, given.stages.split(",")):
                cluster = Cluster((Level(stages, 1.25e7),))
                cut = PLANNERS[given.planner].plan(profile, cluster)
                yield from contestants(given, course, profile, cut)


def contestants(
    given: argparse.Namespace, course: Course, profile: Profile, cut: Partition
) -> Iterator[list[str]]:
    stages = len(cut.stages)
    for schedule, head in (("1f1b-flush", ""), *(("local", head) for head in course.heads)):
        plan = Plan("bench", cut, schedule, MICROBATCH, BATCH)
        found = []
        for seed in range(given.seeds):
            data = DataSpec(course.data)
            spec = TrainSpec(1, plan, data=data, optimizer=course.rule, epochs=course.epochs)
            spec = replace(spec, seed=seed, local_head=head, tracing=profile.tracing)
            with network(given.network, stages) as where:
                found.append(told(spec, ROOT / "workers" / "zoo" / f"{course.model}.py", where))
        inner = [of_stage(ACCURACY, stage) for stage in range(stages - 1)]
        yield [
            f"{course.model}, {stages}, {given.network}",
            f"{schedule} {head}".strip(),
            percents([last(each, ACCURACY) for each in found]),
            ", ".join(percents([last(each, name) for each in found]) for name in inner if head),
            f"{median(seconds(each) for each in found):.2f}",
            f"{messages(profile, plan) * updates(found[0]) / course.epochs * BATCH / 1e6:.2f}",
            f"{mean(each.sent for each in found) / course.epochs / 1e6:.1f}",
            f"{os.getloadavg()[0]:.0f}",
        ]


def values(found: Told, name: str) -> list[float]:
    """Of a metric, in their order."""
    parts = [e.values for e in found.events if isinstance(e, Metrics) and e.name == name]
    return [value for part in parts for value in part]


def last(found: Told, name: str) -> float:
    return values(found, name)[-1]


def seconds(found: Told) -> float:
    """Of the median epoch: its samples by its rate."""
    rates = values(found, "throughput")
    return updates(found) / len(rates) * BATCH * MICROBATCH / median(rates)


def updates(found: Told) -> int:
    """Of all epochs."""
    return max(event.steps[-1] for event in found.events if isinstance(event, Metrics)) + 1


def messages(profile: Profile, plan: Plan) -> int:
    """Bytes that a microbatch sends between stages."""
    local = schedule_named(plan.schedule).local
    sent = CutMessages(profile, plan.partition, local=local).sent
    return sum(map(sum, sent.values()))


def percents(shares: list[float]) -> str:
    """Their mean, and the range where they differ."""
    low, high = 100 * min(shares), 100 * max(shares)
    spread = f" ({low:.1f}-{high:.1f})" if high - low >= 0.05 else ""
    return f"{100 * mean(shares):.1f} %{spread}"


if __name__ == "__main__":
    main()
