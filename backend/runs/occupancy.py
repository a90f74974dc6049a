"""Who works on what, and who waits for what."""

from collections.abc import Mapping
from dataclasses import dataclass

from backend.runs.listing import RunFilter, RunOrder
from backend.runs.nodes import NodeService
from backend.runs.run import Run
from backend.runs.service import RunService
from backend.runs.states import RunState

SHOWN = 100
LIVE = tuple(state for state in RunState if state.is_live)


@dataclass(frozen=True, slots=True)
class QueuedRun:
    """`place` in the queue from 1; `reason` says for people why it does not run yet."""

    run: Run
    place: int
    reason: str


def carried(runs: RunService) -> Mapping[str, tuple[Run, ...]]:
    """The live runs by the node that carries them."""
    found: dict[str, tuple[Run, ...]] = {}
    for run in runs.list(RunFilter(states=LIVE), SHOWN).runs:
        if run.node is not None:
            found[run.node] = (*found.get(run.node, ()), run)
    return found


def queue(runs: RunService, nodes: NodeService) -> list[QueuedRun]:
    """The first queued runs in the order in which agents take them: the oldest first."""
    oldest = RunOrder(descending=False)
    waiting = runs.list(RunFilter(states=(RunState.QUEUED,)), SHOWN, order=oldest).runs
    if not waiting:
        return []
    fault = runs.why_waiting(waiting[0])
    alive = [node.name for node in nodes.list() if node.alive]
    busy = {node: held for node, held in carried(runs).items() if node in alive}
    return [
        QueuedRun(run, place, fault or _turn(place, len(alive), busy))
        for place, run in enumerate(waiting, start=1)
    ]


def _turn(place: int, num_alive: int, busy: Mapping[str, tuple[Run, ...]]) -> str:
    if place > 1:
        return f"{place - 1} before it; a node carries one run at a time."
    if len(busy) < num_alive:
        return "A node is free and takes it within seconds."
    held = ", ".join(f"{node} with run {runs[0].id}" for node, runs in sorted(busy.items()))
    return f"Next. Every node is busy: {held}."
