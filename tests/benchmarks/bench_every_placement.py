"""The planners beside every plan that there is, on small models and clusters.

Prints three tables in Markdown, those of docs/evidence/planner.md, and writes them there with
`--write`. Arguments: how many cases of all kinds there are (2,500), of how many `best` is simulated
(100), and of how many of unequal devices (300), where every way to share a batch among the replicas
of each stage is tried. None with 0: that table stays as it is.
"""

import sys
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "planning"))

from drawn import SHAPES, Case, drawn
from every_placement import fastest
from every_simulation import SAME, SHARING, SIMULATED, Beside, simulated

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
OF_BOUND = ["bound over the fastest plan's seconds, median", "compute alone over them"]
COUNTS = (2500, 100, 300)
LIMITS = {False: "no memory limit", True: "a memory limit"}


def main() -> None:
    page = evidence("planner", "bench_every_placement")
    given = [int(count) for count in sys.argv[1:]]
    all_kinds, equal, unequal = (*given, *COUNTS[len(given) :])
    if all_kinds:
        page.table("placements", HEAD, planned(all_kinds))
    if equal:
        page.table("simulations", [*HEAD, *OF_BOUND], of_best("2 levels", equal, SIMULATED))
    if unequal:
        page.table("sharing", [*HEAD, *OF_BOUND], of_best("unequal devices", unequal, SHARING))


def planned(count: int) -> Iterator[Sequence[str]]:
    for kind, (is_limited, words) in product(SHAPES, LIMITS.items()):
        cases = (drawn(kind, number, is_limited) for number in range(-(-count // 6)))
        yield f"pipedream, {kind}, {words}", *_summed(map(_planned, cases))


def of_best(kind: str, count: int, among: Sequence[str]) -> Iterator[Sequence[str]]:
    for is_limited, words in LIMITS.items():
        cases = ((number, drawn(kind, number, is_limited)) for number in range(-(-count // 2)))
        found = [beside for n, case in cases if (beside := simulated(case, n, among))]
        near = (median(getattr(one, name) for one in found) for name in ("bound", "compute"))
        shares = [f"{share:.3f}" for share in near] if found else ["", ""]
        yield f"best, {kind}, {words}, simulated", *_summed(iter(found)), *shares


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
