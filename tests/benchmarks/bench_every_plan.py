"""Every published profile, and graphs whose cells read the two before them, on clusters of 16 to
4,096 devices with and without a memory limit: the plan, its gap, and what it took.

Prints a table in Markdown, that of docs/evidence/planner.md, and writes it there with `--write`.
Arguments: the profiles and clusters to take (all of them). Needs the published profiles beside the
repository (../shared/profiles) for those.
"""

import resource
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import product
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "planning"))

from cells import network_of_cells
from published import FOLDER, MODELS, load

from backend.cluster.cluster import Cluster, Level
from backend.pipeline.schedules.pipedream import PIPEDREAM
from backend.planning.memory import MemoryRule
from backend.planning.pipedream.planner import optimum
from backend.planning.plan import PlanDoesNotFit
from backend.planning.work import SearchWork, WorkSpent
from backend.profiles.profile import Profile
from tests.benchmarks.evidence import evidence

CELLS = {f"cells {count}": count for count in (300, 600, 900, 1200, 1500)}
CLUSTERS = {
    "A": ((4, 12e9), (4, 1.25e9)),
    "A/10": ((4, 12e8), (4, 1.25e8)),
    "A/100": ((4, 12e7), (4, 1.25e7)),
    "8x8": ((8, 12e9), (8, 1.25e9)),
    "8x128": ((8, 12e9), (128, 1.25e9)),
    "4x8x32": ((4, 5e10), (8, 12e9), (32, 1.25e9)),
    "4x8x16x8": ((4, 1e11), (8, 5e10), (16, 12e9), (8, 1.25e9)),
}
"""Members and bytes/s of each level, innermost first."""
MEMORY = {"no limit": None, "32 GB": 32e9, "16 GB": 16e9, "8 GB": 8e9}
HEAD = ["profile", "layers", "cluster", *(f"{name}: plan, gap, CPU s" for name in MEMORY), "MB"]
WORK = 4e6
"""Twice that of a question; one that searches on has more."""


def main() -> None:
    page = evidence("planner", "bench_every_plan")
    wanted = set(sys.argv[1:])
    models = [
        name for name in (*MODELS, *CELLS) if not wanted & {*MODELS, *CELLS} or name in wanted
    ]
    clusters = [name for name in CLUSTERS if not wanted & {*CLUSTERS} or name in wanted]
    page.table("every-plan", HEAD, rows(models, clusters))


def rows(models: Sequence[str], clusters: Sequence[str]) -> Iterator[Sequence[str]]:
    for cluster, model in product(clusters, models):
        if model in MODELS and not FOLDER.is_dir():
            continue
        with get_context("fork").Pool(1) as process:
            yield process.apply(row, (model, cluster))


def row(model: str, name: str) -> list[str]:
    """In a process of its own, whose memory is what planning took."""
    profile = network_of_cells(CELLS[model], seed=CELLS[model]) if model in CELLS else load(model)
    cluster = Cluster(tuple(Level(*level) for level in CLUSTERS[name]))
    cells = [judged(profile, cluster, limit) for limit in MEMORY.values()]
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return [model, str(len(profile.layers)), name, *cells, str(megabytes)]


def judged(profile: Profile, cluster: Cluster, limit: float | None) -> str:
    """Within `WORK`; "limit" where it came to that."""
    rule = None if limit is None else MemoryRule(limit, PIPEDREAM)
    work, start = SearchWork(WORK), time.process_time()
    try:
        found = optimum(profile, cluster, memory=rule, tells_excess=False, work=work)
    except PlanDoesNotFit:
        return "none fits"
    except WorkSpent:
        return "none at the limit"
    took, label = time.process_time() - start, found.partition.short_label
    return f"{label}, {found.gap:.1%}, {took:.1f}{' (limit)' if work.is_short else ''}"


if __name__ == "__main__":
    main()
