"""Every planner by name. A new one is a file and a line here; the contract tests find it."""

from collections.abc import Callable
from typing import NamedTuple

from backend.cluster.cluster import Cluster
from backend.errors import InvalidInput
from backend.planning.balanced import gpipe_balanced, two_bw
from backend.planning.baselines import data_parallel, even_split, model_parallel, straight
from backend.planning.pipedream.planner import pipedream
from backend.planning.plan import Partition
from backend.profiles.profile import Profile

Planner = Callable[[Profile, Cluster], Partition]
"""A member of the catalog. Raises `PlanDoesNotFit`."""


class Entry(NamedTuple):
    """A planner and its title for people."""

    title: str
    plan: Planner


PLANNERS: dict[str, Entry] = {
    "pipedream": Entry("PipeDream: pipeline with replicated stages", pipedream),
    "pipedream-2bw": Entry("PipeDream-2BW: equal pipelines side by side", two_bw),
    "straight": Entry("Straight pipeline, no replication", straight),
    "data-parallel": Entry("Data parallelism: the whole model on every device", data_parallel),
    "model-parallel": Entry("Model parallelism: balanced by compute", model_parallel),
    "gpipe-balanced": Entry("GPipe: stages of even compute", gpipe_balanced),
    "even-split": Entry("Even split: equal numbers of layers", even_split),
}


SEARCHES: dict[str, str] = {
    "best": "Best: partition, schedule and more",
    "avgpipe": "AvgPipe: several pipelines on the same devices",
}
"""Planners that choose the schedule too (backend.prediction.search), and their titles."""


def title(name: str) -> str:
    """The title of the planner `name` for people; the name itself where it is not ours."""
    return PLANNERS[name].title if name in PLANNERS else SEARCHES.get(name, name)


def planner(name: str) -> Planner:
    """The planner called `name`; raises `InvalidInput` with the list of names."""
    if name not in PLANNERS:
        raise InvalidInput(f"no planner {name!r}", f"Choose one of: {', '.join(PLANNERS)}.")
    return PLANNERS[name].plan
