"""Every planner by name. A new one is a file and a line here; the contract tests find it."""

from typing import NamedTuple

from backend.errors import InvalidInput
from backend.planning.baselines import data_parallel, even_split, model_parallel, straight
from backend.planning.pipedream_dp import pipedream
from backend.planning.plan import Planner


class Entry(NamedTuple):
    """A planner and its title for people."""

    title: str
    plan: Planner


PLANNERS: dict[str, Entry] = {
    "pipedream": Entry("PipeDream: pipeline with replicated stages", pipedream),
    "straight": Entry("Straight pipeline, no replication", straight),
    "data-parallel": Entry("Data parallelism: the whole model on every device", data_parallel),
    "model-parallel": Entry("Model parallelism: balanced by compute", model_parallel),
    "even-split": Entry("Even split: equal numbers of layers", even_split),
}


def planner(name: str) -> Planner:
    """The planner called `name`; raises `InvalidInput` with the list of names."""
    if name not in PLANNERS:
        raise InvalidInput(f"no planner {name!r}", f"Known are: {', '.join(PLANNERS)}.")
    return PLANNERS[name].plan
