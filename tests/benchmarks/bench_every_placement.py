"""The planners beside every plan that there is, on small models and clusters.

Prints a table in Markdown, that of docs/evidence/planner.md, and writes it there with `--write`.
Arguments: how many cases of all kinds there are (2,500), and how many are simulated (100).
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "planning"))

from drawn import SHAPES, Case, drawn
from every_placement import every_placement, fastest

from backend.cluster.cluster import Device
from backend.errors import StageflowError
from backend.planning.pipedream.planner import optimum
from backend.planning.plan import Plan, PlanDoesNotFit
from backend.prediction.answer import rank
from backend.prediction.bottleneck import most_samples
from backend.prediction.question import Question
from tests.benchmarks.evidence import evidence

HEAD = [
    "planner, cases",
    "number",
    "with a plan faster than the bound",
    "than the plan",
    "by more than 1 %",
    "by more than 5 %",
    "most",
]
SIMULATED = ("1f1b-flush", "pipedream", "gpipe")
LIMITS = {False: "no memory limit", True: "a memory limit"}
SAME = 1 + 1e-9


def main() -> None:
    page = evidence("planner", "bench_every_placement")
    counts = [int(given) for given in sys.argv[1:]] or [2500, 100]
    page.table("placements", HEAD, rows(counts[0], counts[-1]))


def rows(count: int, simulated: int) -> Iterator[Sequence[str]]:
    for kind, (is_limited, words) in product(SHAPES, LIMITS.items()):
        cases = (drawn(kind, number, is_limited) for number in range(-(-count // 6)))
        yield f"pipedream, {kind}, {words}", *_summed(map(_planned, cases))
    for kind in ("2 levels", "unequal devices"):
        for is_limited, words in LIMITS.items():
            cases = (drawn(kind, number, is_limited) for number in range(simulated // 4))
            found = (_simulated(case, number) for number, case in enumerate(cases))
            yield f"best, {kind}, {words}, simulated", *_summed(found)


@dataclass(frozen=True, slots=True)
class Beside:
    """How many times as fast as the planner's plan the fastest plan is, and whether it is faster
    than the bound."""

    times: float
    is_beyond: bool


def _summed(found: Iterator[Beside | None]) -> list[str]:
    each = [one for one in found if one]
    slower = [sum(one.times > least for one in each) for least in (SAME, 1.01, 1.05)]
    beyond = sum(one.is_beyond for one in each)
    most = max((one.times for one in each), default=1.0)
    return [f"{len(each):,}", str(beyond), *map(str, slower), f"{most:.3f}x"]


def _planned(case: Case) -> Beside | None:
    try:
        found = optimum(case.profile, case.cluster, memory=case.rule, tells_excess=False)
    except PlanDoesNotFit:
        return None
    best, _ = fastest(case.profile, case.cluster, case.rule, found)
    return Beside(found.seconds / best if best else 1.0, found.lower_bound > best * SAME)


def _simulated(case: Case, number: int) -> Beside | None:
    """`best` under one schedule beside every partition under it. A bound is of rates here."""
    cluster, schedule = case.cluster, SIMULATED[number % len(SIMULATED)]
    if case.rule:
        cluster = replace(cluster, device=Device(memory=case.rule.limit))
        each = tuple(replace(device, memory=case.rule.limit) for device in case.cluster.devices)
        cluster = replace(cluster, devices=each)
    profile = replace(case.profile, microbatch=1)
    question = Question(profile, cluster, schedule=schedule)
    try:
        [found] = rank(question)
    except StageflowError:
        return None
    rate = best = found.prediction.samples_per_second
    for partition in every_placement(profile, cluster):
        plan = replace(question.plan("best", partition), planner="best")
        best = max(best, _rate(question, plan, best))
    if not 0 < rate < float("inf"):
        return None
    times = best / rate
    return Beside(
        times, times * found.bound_seconds > found.prediction.seconds_per_minibatch * SAME
    )


def _rate(question: Question, plan: Plan, best: float) -> float:
    """Samples/s of `plan`; 0 where it cannot be better than `best` or does not fit."""
    try:
        if most_samples(question.profile, question.cluster, plan) <= best * SAME:
            return 0.0
        return question.predict(plan).samples_per_second
    except StageflowError:
        return 0.0


if __name__ == "__main__":
    main()
