"""The queued runs of all projects in their order, with what is in store for each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf, isfinite

from backend.runs.dispatch.fairness import LOOKED_AT, in_turn, over_quota
from backend.runs.dispatch.nodes import Node
from backend.runs.dispatch.placement import world_size
from backend.runs.dispatch.turns import Queued, Turn, Until, turns
from backend.runs.remaining import expected, predicted
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run
from backend.services.runs.predicted import predicted_rates
from backend.services.runs.stand_in import placed
from backend.services.runs.stores import Stores
from backend.storage.nodes.holdings import Taken


@dataclass(frozen=True, slots=True)
class Line:
    """`turns` of the runs that may start as far as their projects go, in their order; why others
    may not is in `held_up`. Both by run. `pooled`: those that may start, in their order, in a job
    of their pool."""

    turns: Mapping[int, Turn]
    held_up: Mapping[int, str]
    pooled: Sequence[Run] = ()


def in_line(stores: Stores, asking: str = "") -> Line:
    """As it is now; `asking` is the node that would like to lead the next one."""
    waiting, loads = stores.loads.waiting(LOOKED_AT), stores.loads.loads()
    if not waiting:
        return Line({}, {})
    first = in_turn(waiting, loads)[:LOOKED_AT]
    by_id = {run.id: run for run in stores.runs.several([each.run_id for each in first])}
    sizes = {run.id: _fewest(run) for run in by_id.values()}
    first = in_turn([each for each in first if each.run_id in by_id], loads, sizes)
    runs = [by_id[each.run_id] for each in first]
    held_up = {
        each.run_id: reason
        for each in waiting
        if (reason := over_quota(loads[each.project_id])) is not None
    }
    for run in runs:
        if reason := over_quota(loads[run.project_id], _fewest(run)):
            held_up[run.id] = reason
    free = [run for run in runs if run.id not in held_up]
    queue = _queue([run for run in free if run.spec.pool is None], stores, asking)
    until = expected_free(stores, stores.holdings.taken())
    found = turns(queue, _nodes(stores, asking), until, asking)
    pooled = [run for run in free if run.spec.pool is not None]
    return Line({turn.run_id: turn for turn in found}, held_up, pooled)


def expected_free(stores: Stores, taken: Taken) -> Until:
    """In how many seconds each of the devices that are taken is expected to be free."""
    now = datetime.now(UTC)
    ids = {run for there in taken.values() for run in there.values()}
    runs = stores.runs.several(sorted(ids))
    rates = predicted_rates(runs, stores)
    left = {run.id: expected(run, rates.get(run.id, 0.0), now) for run in runs}
    return {
        node: {device: left.get(run, inf) for device, run in there.items()}
        for node, there in taken.items()
    }


def _fewest(run: Run) -> int:
    """Devices that it holds at least: parallel pipelines may share theirs."""
    if isinstance(run.spec, TrainSpec) and (run.spec.nodes or run.spec.pool):
        return run.spec.plan.partition.num_devices
    return 1 if run.asked.whole_nodes else world_size(run.asked)


def _queue(runs: Sequence[Run], stores: Stores, asking: str) -> list[Queued]:
    """A run that was launched again is expected to take as long as the one before; others as
    predicted."""
    now, rates = datetime.now(UTC), predicted_rates(runs, stores)
    before = {run.origin_id for run in runs if run.origin_id is not None}
    lasted = {run.id: run for run in stores.runs.several(sorted(before))}
    found = []
    for run in runs:
        seconds = _seconds(run, lasted.get(run.origin_id or 0))
        if not isfinite(seconds):
            seconds = predicted(run, rates.get(run.id, 0.0), now)
        found.append(Queued(run.id, placed(run, stores, asking), seconds))
    return found


def _seconds(run: Run, before: Run | None) -> float:
    if before is None or before.started_at is None or before.finished_at is None:
        return inf
    spent = (before.finished_at - before.started_at).total_seconds()
    if isinstance(run.spec, TrainSpec) and isinstance(before.spec, TrainSpec):
        return spent * run.spec.epochs / before.spec.epochs
    return spent


def _nodes(stores: Stores, asking: str) -> Sequence[Node]:
    """Those that are alive, and who asks: it may not have said yet what it has."""
    alive = stores.nodes.alive()
    if not asking or any(node.name == asking for node in alive):
        return alive
    return [*alive, Node(asking, (), True, datetime.now(UTC), {})]
