"""What each pair of a plan and a schedule does, computed once per question."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import streamlit as st

from app import services
from app.cuts import read_cut
from app.keys import BY_PROFILE
from app.naming import BY_HAND, plan_name
from app.pairs import PIPELINES, Pair
from app.sizes import PlanSizes
from backend.cluster.cluster import Cluster
from backend.errors import StageflowError
from backend.pipeline.actions import Action, Backward, BackwardWeight, Step
from backend.pipeline.bubbles import Causes, idle_causes, total
from backend.pipeline.memory import Moment, memory
from backend.pipeline.program import Program
from backend.pipeline.timeline import Timeline
from backend.planning.baselines import data_parallel
from backend.planning.catalog import planner
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.predict import predict, predicted_program
from backend.prediction.prediction import Prediction
from backend.prediction.shapes import microbatch_unit
from backend.profiles.profile import Profile

KEPT = 128


@dataclass(frozen=True, slots=True)
class Outcome:
    """`timeline` is of about as many microbatches for all pairs; `idle` its idle seconds by
    cause, of all ranks; `held` what each rank holds over time; `staleness` per stage."""

    pair: Pair
    name: str
    prediction: Prediction
    program: Program
    timeline: Timeline
    idle: Causes
    held: tuple[tuple[Moment, ...], ...]
    staleness: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """A pair that cannot be: the reason is for people."""

    pair: Pair
    name: str
    reason: StageflowError


def outcome(
    profile: Profile, cluster: Cluster, pair: Pair, optimizer: str, num_microbatches: int
) -> Outcome | Failed:
    """What `pair` does there, or why it cannot be."""
    name = f"{pair.source} · {pair.schedule}"
    try:
        plan = plan_of(profile, cluster, pair)
        name = f"{plan_name(plan)}" + (f" · batch {plan.batch}" if plan.batch > 1 else "")
        return _outcome(profile, cluster, pair, name, plan, optimizer, num_microbatches)
    except StageflowError as reason:
        return Failed(pair, name, reason)


def plan_of(profile: Profile, cluster: Cluster, pair: Pair) -> Plan:
    """The pair's plan. Raises `InvalidInput`, `NotFound` and `PlanDoesNotFit`."""
    if pair.plan_id is not None:
        cut, maker = services.backend().plans.get(pair.plan_id).plan.partition, pair.source
    elif pair.is_planner:
        cut, maker = planned(profile, cluster, pair.source), pair.source
    else:
        whole = Partition((Stage(0, len(profile.layers), (0,)),))
        cut, maker = read_cut(pair.source, whole, cluster.num_devices), BY_HAND
    return Plan(maker, cut, pair.schedule, profile.microbatch, pair.batch)


@st.cache_resource(show_spinner=False, max_entries=KEPT, hash_funcs=BY_PROFILE)
def reference(profile: Profile, cluster: Cluster, optimizer: str) -> float | None:
    """Samples/s of data parallelism that synchronises every round; None where it does not
    fit."""
    plan = Plan("data-parallel", data_parallel(profile, cluster), "pipedream", profile.microbatch)
    try:
        return predict(profile, cluster, plan, optimizer).samples_per_second or None
    except StageflowError:
        return None


@st.cache_resource(show_spinner=False, max_entries=KEPT, hash_funcs=BY_PROFILE)
def planned(profile: Profile, cluster: Cluster, name: str) -> Partition:
    """What the planner `name` proposes. Raises `PlanDoesNotFit` and `InvalidInput`."""
    return planner(name)(profile, cluster)


def pipeline(profile: Profile, cluster: Cluster) -> tuple[str, Partition]:
    """A planner and its partition, to compare schedules on: PipeDream's, unless that has one
    stage alone, where all schedules do the same. Raises as `planned` where none fits."""
    first, *others = PIPELINES
    cut = planned(profile, cluster, first)
    for name in others:
        if cut.positions > 1:
            break
        with suppress(StageflowError):
            return name, planned(profile, cluster, name)
    return first, cut


@st.cache_resource(show_spinner="Simulating…", max_entries=KEPT, hash_funcs=BY_PROFILE)
def _outcome(
    profile: Profile,
    cluster: Cluster,
    pair: Pair,
    name: str,
    plan: Plan,
    optimizer: str,
    num_microbatches: int,
) -> Outcome:
    prediction = predict(profile, cluster, plan, optimizer)
    unit = microbatch_unit(plan)
    number = unit * max(1, round(num_microbatches / unit))
    program, timeline = predicted_program(profile, cluster, plan, number)
    return Outcome(
        pair,
        name,
        prediction,
        program,
        timeline,
        total(idle_causes(program, timeline)),
        memory(program, timeline, PlanSizes(profile, plan.partition, optimizer)),
        staleness(program),
    )


def telling(profile: Profile, cluster: Cluster, pairs: Sequence[Pair], least: int) -> int:
    """Microbatches in which every pair makes two updates at least: in one alone schedules
    that overlap updates look like those that do not."""
    found = [least]
    for pair in pairs:
        with suppress(StageflowError):
            found.append(2 * microbatch_unit(plan_of(profile, cluster, pair)))
    return max(found)


def staleness(program: Program) -> tuple[int, ...]:
    """Per stage the most updates between a forward and its backward, over its replicas."""
    worst = [0] * program.shape.num_stages
    for actions in program.ranks:
        for stage, updates in _updates(actions):
            worst[stage] = max(worst[stage], updates)
    return tuple(worst)


def _updates(actions: Sequence[Action]) -> list[tuple[int, int]]:
    newest: dict[int, int] = {}
    found = []
    for action in actions:
        if isinstance(action, Step):
            newest[action.stage] = action.version
        elif isinstance(action, Backward | BackwardWeight):
            found.append((action.stage, newest.get(action.stage, 0) - action.version))
    return found
