"""Who works on what, and who waits for what."""

from collections.abc import Mapping, Sequence

from backend.runs.dispatch.nodes import Node
from backend.runs.history.listing import QueuedRun, RunFilter, RunOrder
from backend.runs.run import Run
from backend.runs.states import LIVE, RunState
from backend.services.runs.runs import RunService

SHOWN = 100


def carried(runs: RunService) -> Mapping[str, tuple[Run, ...]]:
    """The live runs by the node that carries them."""
    found: dict[str, tuple[Run, ...]] = {}
    for run in runs.list(RunFilter(states=LIVE), SHOWN).runs:
        if run.node is not None:
            found[run.node] = (*found.get(run.node, ()), run)
    return found


def queue(runs: RunService) -> list[QueuedRun]:
    """The first queued runs in the order in which agents take them, see `fairness`."""
    oldest = RunOrder(descending=False)
    waiting = runs.list(RunFilter(states=(RunState.QUEUED,)), SHOWN, order=oldest).runs
    if not waiting:
        return []
    fault, line, alive, busy = runs.why_stopped(), runs.line(), runs.nodes.alive(), _busy(runs)
    places = {run_id: place for place, run_id in enumerate(line, start=1)}
    found = []
    for run in sorted(waiting, key=lambda run: places.get(run.id, len(places) + run.id)):
        place = places.get(run.id, len(places) + 1)
        reason = fault or line.get(run.id) or runs.why_apart(run)
        found.append(QueuedRun(run, place, reason or _turn(place, alive, busy)))
    return found


def _busy(runs: RunService) -> Mapping[str, str]:
    """What each node carries, in words: the number of a run is for those who see it."""
    held = runs.loads.busy()
    seen = {run.id for run in runs.several(sorted(set(held.values())))}
    return {
        node: f"{node} with {f'run {run_id}' if run_id in seen else 'a run of another project'}"
        for node, run_id in sorted(held.items())
    }


def _turn(place: int, alive: Sequence[Node], busy: Mapping[str, str]) -> str:
    if place > 1:
        return f"{place - 1} before it in the queue; a node executes one run at a time."
    names = sorted(node.name for node in alive)
    if not set(names) <= busy.keys():
        return "A node is free and starts it within seconds."
    return f"It is next. Every node is busy: {', '.join(busy[name] for name in names)}."
