"""The planners beside every plan that there is, on small models and clusters.

Prints two tables in Markdown, those of docs/evidence/planner.md, and writes them there with
`--write`. Arguments: how many cases of all kinds there are (2,500; none with 0), and how many are
simulated (100).
"""

import sys
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "planning"))

from drawn import SHAPES, Case, drawn
from every_placement import fastest
from every_simulation import SAME, Beside, simulated

from backend.planning.pipedream.planner import optimum
from backend.planning.plan import PlanDoesNotFit
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
LIMITS = {False: "no memory limit", True: "a memory limit"}


def main() -> None:
    page = evidence("planner", "bench_every_placement")
    counts = [int(given) for given in sys.argv[1:]] or [2500, 100]
    if counts[0]:
        page.table("placements", HEAD, planned(counts[0]))
    page.table("simulations", HEAD, of_best(counts[-1]))


def planned(count: int) -> Iterator[Sequence[str]]:
    for kind, (is_limited, words) in product(SHAPES, LIMITS.items()):
        cases = (drawn(kind, number, is_limited) for number in range(-(-count // 6)))
        yield f"pipedream, {kind}, {words}", *_summed(map(_planned, cases))


def of_best(count: int) -> Iterator[Sequence[str]]:
    for kind, (is_limited, words) in product(("2 levels", "unequal devices"), LIMITS.items()):
        cases = (drawn(kind, number, is_limited) for number in range(-(-count // 4)))
        found = (simulated(case, number) for number, case in enumerate(cases))
        yield f"best, {kind}, {words}, simulated", *_summed(found)


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


if __name__ == "__main__":
    main()
