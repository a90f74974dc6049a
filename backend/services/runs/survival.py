"""How a run goes on when nodes of it stay away: by a plan that was made for fewer of them."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from math import lcm

from backend.errors import InvalidInput, StageflowError
from backend.prediction.fallback import Fallback
from backend.prediction.fallbacks import fallbacks, order_words
from backend.prediction.fewer_sites import FEWER_SITES
from backend.prediction.question import Question
from backend.prediction.shapes import microbatch_unit
from backend.prediction.watch import Watch
from backend.runs.attempts.checkpoints import Checkpoint
from backend.runs.attempts.going_on import Stake, expected_wait, goes_on
from backend.runs.dispatch.nodes import Node
from backend.runs.dispatch.placement import shares
from backend.runs.request.combinations import check_combinations
from backend.runs.request.spec import RunSpec, TrainSpec
from backend.runs.run import Run
from backend.services.runs.stores import Stores
from backend.units import count_text

WAIT = 60.0
"""Seconds for which nodes are waited for in any case."""
PLANNING = 20.0
"""Seconds of planning at a launch; then the best so far is kept."""
RESTART = 30.0
"""Seconds from the start of an attempt to its first update, where none was measured."""
RETURNED = "NodesReturned"
REMEMBERED = 20
"""Past outages that tell how long the next one will be."""


def foreseen(spec: RunSpec, stores: Stores) -> tuple[Fallback, ...]:
    """The plans for one node and for two nodes fewer than `spec` names; () where it names only
    one, has no stored plan, or wants no other plan."""
    if not isinstance(spec, TrainSpec) or not spec.replan or spec.plan_id is None:
        return ()
    if len(spec.nodes) < 2:
        return ()
    devices = {node.name: len(node.devices) for node in stores.nodes.list()}
    sizes = [devices.get(name, 0) for name in spec.nodes]
    end = time.monotonic() + PLANNING
    stored = stores.plans.get(spec.plan_id)
    profile = stores.profiles.get(stored.profile_id).profile
    with suppress(StageflowError):  # nodes that are not the plan's cluster, say
        question = Question(profile, stored.cluster, optimizer=spec.optimizer.planned)
        question = question.under(state_precision=spec.state_precision)
        watch = Watch(stop=lambda: time.monotonic() > end)
        return tuple(_runnable(spec, each) for each in fallbacks(question, spec.plan, sizes, watch))
    return ()


def _runnable(spec: TrainSpec, fallback: Fallback) -> Fallback:
    try:
        if fallback.plan is not None:
            check_combinations(replace(spec, plan=fallback.plan))
    except InvalidInput as fault:
        return replace(fallback, plan=None, factor=0.0, fault=str(fault))
    return fallback


def survived(
    run: Run, spec: TrainSpec, nodes: Sequence[Node], stores: Stores, asking: str = ""
) -> TrainSpec:
    """`spec` on the nodes that are left of those that it names, by the plan for them, where these
    were waited for and going on takes less time than waiting; `spec` itself otherwise. `asking` is
    the node that would like to lead it."""
    lost = _lost(spec, nodes)
    newest = stores.checkpoints.newest(run) if lost and run.fallbacks else None
    if newest is None:
        return spec
    smaller, fallback = on_nodes_left(run, spec, nodes, newest, asking)
    waited = _waited(run, [spec.nodes[number] for number in lost], nodes, stores)
    if smaller is None or fallback is None or waited < (0.0 if is_all_there(run, newest) else WAIT):
        return spec
    wait = expected_wait(waited, stores.runs.outages(REMEMBERED))
    return smaller if goes_on(stake_of(run, fallback, newest, stores), wait) else spec


def on_nodes_left(
    run: Run, spec: TrainSpec, nodes: Sequence[Node], newest: Checkpoint, asking: str = ""
) -> tuple[TrainSpec | None, Fallback | None]:
    """`spec` on its nodes that are alive, with the fallback by which: no fallback where all are,
    and no spec where none is planned, or none of these could lead. `asking` as in `survived`."""
    lost = _lost(spec, nodes)
    if not lost:
        return spec, None
    fallback = next((each for each in run.fallbacks if each.is_for(lost) and each.plan), None)
    if fallback is None:
        return None, None
    return _on_what_is_left(run, spec, fallback, nodes, newest, asking), fallback


def prospect(run: Run, nodes: Sequence[Node]) -> str:
    """What becomes of a run whose nodes stay away, for people; "" where nothing is planned."""
    if run.attempt == 0 or not isinstance(run.spec, TrainSpec):
        return ""
    lost = _lost(run.spec, nodes)
    found = next((each for each in run.fallbacks if each.is_for(lost)), None)
    if found is None:
        return ""
    if found.plan is None:
        return f" No plan fits what is left: {found.fault}."
    on, more = "", ""
    if found.sites:
        of = run.spec.plan.num_sites
        on, more = f" on {count_text(found.sites, 'site')} of {of}", f" {FEWER_SITES}."
    if words := order_words([found]):
        more += f" {words}."
    return (
        f" After {WAIT:.0f} s it goes on by {found.plan.label}{on}, at {found.factor:.2f} of its "
        f"samples/s, where that is expected to take less time than waiting.{more}"
    )


def is_all_there(run: Run, newest: Checkpoint) -> bool:
    """Whether other replicas had all that a lost node had, and saved it: nothing is done again."""
    spec, told = run.spec, run.progress
    if not isinstance(spec, TrainSpec) or told is None or told.phase != "train":
        return False
    return max(spec.plan.partition.replicas) > 1 and newest.mark.step >= told.done


def fallback_in(run: Run, spec: RunSpec) -> Fallback | None:
    """The fallback by which `spec` lets the run go on; None where by its own plan."""
    own = run.spec
    if not isinstance(spec, TrainSpec) or not isinstance(own, TrainSpec) or spec.plan == own.plan:
        return None
    return next((each for each in run.fallbacks if each.plan == spec.plan), None)


def stake_of(run: Run, fallback: Fallback, newest: Checkpoint, stores: Stores) -> Stake:
    """What is weighed between the run's own plan and the fallback, from that checkpoint on."""
    spec = run.spec
    assert isinstance(spec, TrainSpec)
    minibatch = spec.plan.microbatch * spec.plan.batch
    total = spec.data.samples * spec.epochs
    if run.progress is not None and run.progress.phase == "train":
        total = run.progress.total * minibatch
    left = max(0.0, float(total - newest.mark.step * minibatch))
    return Stake(left, _rate(run, stores), fallback.factor, _restart(run, stores))


def _lost(spec: TrainSpec, nodes: Sequence[Node]) -> list[int]:
    alive = {node.name for node in nodes if node.alive}
    return [number for number, name in enumerate(spec.nodes) if name not in alive]


def _on_what_is_left(
    run: Run,
    spec: TrainSpec,
    fallback: Fallback,
    nodes: Sequence[Node],
    newest: Checkpoint,
    asking: str,
) -> TrainSpec | None:
    """None where the node that would lead may not see the checkpoint: it may lie on the one that
    has led so far alone. Nodes that are alike may change places for that."""
    assert fallback.plan is not None
    alive = {node.name for node in nodes if node.alive}
    left = [name for name in spec.nodes if name in alive]
    sees = {asking} if asking and newest.is_here else set()
    if run.node in left:
        sees.add(run.node)
    own_round = lcm(microbatch_unit(spec.plan), spec.round)
    for first in sorted(sees) if not fallback.lost else left[:1]:
        order = (first, *(name for name in left if name != first))
        smaller = replace(spec, plan=fallback.plan, nodes=order, round=own_round)
        if first in left and shares(smaller, nodes)[0].node in sees:
            return smaller
    return None


def _waited(run: Run, lost: Sequence[str], nodes: Sequence[Node], stores: Stores) -> float:
    """Seconds since the last of the lost nodes spoke, and the last attempt ended, unless that was
    because others were back."""
    last = stores.runs.attempts(run.id)[-1:]
    ends = [each.finished_at for each in last if not each.error or each.error.kind != RETURNED]
    spoke = [node.heartbeat_at for node in nodes if node.name in lost]
    moments = [moment for moment in (*ends, *spoke) if moment is not None]
    if not moments:
        return 0.0
    return (datetime.now(UTC) - max(moments)).total_seconds()


def _rate(run: Run, stores: Stores) -> float:
    """Samples/s by the run's own plan: as measured last, else as predicted."""
    planned = any(attempt.plan for attempt in stores.runs.attempts(run.id))
    measured = [] if planned else stores.metrics.last(run.id, "throughput")
    if measured and measured[0].value > 0:
        return measured[0].value
    assert isinstance(run.spec, TrainSpec)
    if run.spec.plan_id is None:
        return 0.0
    return stores.plans.get(run.spec.plan_id).prediction.samples_per_second


def _restart(run: Run, stores: Stores) -> float:
    """As the first attempt took."""
    first = stores.metrics.curve(run.id, "loss", 1)
    if not first or run.started_at is None:
        return RESTART
    return max(0.0, first[0].time - run.started_at.timestamp())
