"""Who works on what, and who waits for what."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import inf, isfinite

from backend.runs.dispatch.turns import Turn
from backend.runs.history.listing import QueuedRun, RunFilter, RunOrder
from backend.runs.run import Run
from backend.runs.states import RunState
from backend.services.runs.runs import RunService

SHOWN = 100


@dataclass(frozen=True, slots=True)
class HeldDevices:
    """`devices` of a node that a run holds `since` then, and in how many seconds they are expected
    to be free (None where nobody knows). `run` is None where the visitor does not see it."""

    devices: tuple[int, ...]
    run: Run | None
    since: datetime | None
    seconds: float | None


def holdings(runs: RunService) -> Mapping[str, tuple[HeldDevices, ...]]:
    """By node, what live runs hold there."""
    taken = runs.held()
    until = runs.expected_free(taken)
    ids = sorted({run for there in taken.values() for run in there.values()})
    seen = {run.id: run for run in runs.several(ids)}
    found: dict[str, tuple[HeldDevices, ...]] = {}
    for node, there in taken.items():
        for run_id in dict.fromkeys(there.values()):
            devices = tuple(device for device, by in there.items() if by == run_id)
            run, left = seen.get(run_id), until[node][devices[0]]
            since = run.started_at if run else None
            each = HeldDevices(devices, run, since, left if left < inf else None)
            found[node] = (*found.get(node, ()), each)
    return found


def queue(runs: RunService) -> list[QueuedRun]:
    """The first queued runs in the order in which agents take them, see `turns`."""
    oldest = RunOrder(descending=False)
    waiting = runs.list(RunFilter(states=(RunState.QUEUED,)), SHOWN, order=oldest).runs
    if not waiting:
        return []
    fault, line = runs.why_stopped(), runs.line()
    ahead = [*line.turns, *(run.id for run in line.pooled), *line.held_up]
    places = {run_id: place for place, run_id in enumerate(ahead, start=1)}
    seen = {run.id for run in waiting}
    pooled = runs.why_pooled([run for run in waiting if run.spec.pool is not None])
    found = []
    for run in sorted(waiting, key=lambda run: places.get(run.id, len(places) + run.id)):
        place, turn = places.get(run.id, len(places) + 1), line.turns.get(run.id)
        if run.spec.pool is not None:
            reason = line.held_up.get(run.id) or pooled[run.id]
            found.append(QueuedRun(run, place, reason, None))
            continue
        reason = fault or line.held_up.get(run.id) or runs.why_apart(run) or _waits(turn, seen)
        found.append(QueuedRun(run, place, reason, None if fault else _start(turn)))
    return found


def _start(turn: Turn | None) -> datetime | None:
    """When it is expected to start; None where nobody knows."""
    if turn is None or not isfinite(turn.seconds):
        return None
    return datetime.now(UTC) + timedelta(seconds=turn.seconds)


def _waits(turn: Turn | None, seen: set[int]) -> str:
    """The number of a run is for those who see it."""
    if turn is None:
        return f"It is not among the first {SHOWN} of the queue yet."
    if turn.behind is not None:
        other = f"Run {turn.behind}" if turn.behind in seen else "A run of another project"
        return f"{other} is before it and has reserved the devices that it needs."
    nodes = ", ".join(turn.nodes)
    if turn.seconds == 0:
        return f"Its devices on {nodes} are free: it starts within seconds."
    minutes = f"in about {max(1, round(turn.seconds / 60))} min" if turn.seconds < inf else ""
    return (
        f"It is next, and has reserved devices on {nodes} that other runs still hold; "
        f"expected start: {minutes or 'not known'}."
    )
