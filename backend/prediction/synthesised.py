"""An order found for a plan's predicted seconds, beside the schedules of the catalog."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise

from backend.cluster.cluster import Cluster
from backend.errors import InvalidInput
from backend.pipeline.actions import (
    BackwardInput,
    BackwardWeight,
    Compute,
    Flow,
    Forward,
    Message,
    Step,
)
from backend.pipeline.bubbles import idle_causes
from backend.pipeline.chunk_placement import V_CHUNKS, Placement
from backend.pipeline.held import in_flight, most
from backend.pipeline.kinds import Kind
from backend.pipeline.lower import complete, lower
from backend.pipeline.order import Order
from backend.pipeline.program import Program
from backend.pipeline.schedules.catalog import SCHEDULES, schedule
from backend.pipeline.schedules.interleaved_zero_bubble import INTERLEAVED_ZB
from backend.pipeline.schedules.zb_v import ZB_V
from backend.pipeline.shape import Shape
from backend.pipeline.synthesis.costs import Sequences, StageCosts
from backend.pipeline.synthesis.improve import synthesise
from backend.pipeline.timeline import Timeline
from backend.pipeline.verify import check
from backend.planning.balanced import even_stops
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.durations import PlanDurations
from backend.prediction.predict import check_plan
from backend.prediction.shapes import with_one_way
from backend.prediction.steady import durations_in, on_cluster
from backend.profiles.profile import Profile
from backend.profiles.what_if import at_microbatch

WORK = 2_000_000
"""Computes that a search places on a clock: some seconds on one core."""
MAKES: dict[str, Callable[[int, int], Compute]] = {
    "F": Forward,
    "I": BackwardInput,
    "W": BackwardWeight,
}
LETTERS = {
    Kind.FORWARD: "F",
    Kind.BACKWARD: "IW",
    Kind.BACKWARD_INPUT: "I",
    Kind.BACKWARD_WEIGHT: "W",
}


@dataclass(frozen=True, slots=True)
class Timed:
    """A program of one batch on the clock of a plan's cluster; `name` is of the catalog, or
    "synthesised". `idle` are the idle seconds of each rank."""

    name: str
    program: Program
    timeline: Timeline

    @property
    def seconds(self) -> float:
        """Of the batch, filling and draining counted."""
        return self.timeline.makespan

    @property
    def idle(self) -> tuple[float, ...]:
        causes = idle_causes(self.program, self.timeline)
        return tuple(sum(one.values()) for one in causes)


@dataclass(frozen=True, slots=True)
class Synthesised:
    """`found` is never slower than `best`, the fastest of `known`: the members of the catalog for
    the stages of `partition` that hold on no rank more than `most_held` forwards. It is that member
    itself where nothing faster was found."""

    found: Timed
    best: Timed
    known: tuple[Timed, ...]
    most_held: tuple[int, ...]
    partition: Partition

    @property
    def gain(self) -> float:
        """How many times as fast as `best`."""
        return self.best.seconds / self.found.seconds if self.found.seconds else 1.0

    @property
    def idle_saved(self) -> tuple[float, ...]:
        """Seconds for which each rank waits less than under `best`."""
        pairs = zip(self.best.idle, self.found.idle, strict=True)
        return tuple(before - after for before, after in pairs)


def synthesised(
    profile: Profile,
    cluster: Cluster,
    plan: Plan,
    work: int = WORK,
    most_held: tuple[int, ...] = (),
) -> Synthesised:
    """An order of one batch of `plan`, in which no rank holds more forwards than `most_held`, by
    default than under the plan's own schedule. Raises `InvalidInput` where the plan is no pipeline
    with a flush that is straight or a V, or no schedule of the catalog holds as little, else as
    `predict`; memory is not checked."""
    _check_one(plan)
    known = known_at(profile, cluster, plan, most_held)
    profile = at_microbatch(profile, plan.microbatch)
    shape = with_one_way(plan.shape(plan.batch), profile, plan.partition)
    costs = _costs(durations_in(shape, profile, cluster, plan), shape, known.most_held)
    order = synthesise(costs, plan.batch, work, [_sequences(one.program) for one in known.known])
    found = _timed("synthesised", _program(shape, costs, order), profile, cluster, plan)
    fastest = min(known.best, found, key=lambda one: one.seconds)
    return replace(known, found=fastest)


def known_at(
    profile: Profile, cluster: Cluster, plan: Plan, most_held: tuple[int, ...] = ()
) -> Synthesised:
    """The members of the catalog alone for the stages of `plan`, at that memory: nothing is
    searched for. Raises as `synthesised`, but for chunks that go round the ranks too."""
    check_plan(profile, cluster, plan)
    profile = at_microbatch(profile, plan.microbatch)
    shape = with_one_way(plan.shape(plan.batch), profile, plan.partition)
    if shape.one_way:
        raise InvalidInput(
            "the plan has stages to which no gradient comes back, and orders are found for "
            "pipelines that train every stage",
            "Train all layers, or keep the plan's schedule.",
        )
    own = lower(schedule(plan.schedule), shape)
    held = most_held or _held(own)
    members = {plan.schedule: own} | dict(_members(replace(shape, kept_order=())))
    known = [
        _timed(name, program, profile, cluster, plan)
        for name, program in members.items()
        if all(map(int.__le__, _held(program), held))
    ]
    if not known:
        raise InvalidInput(
            f"no schedule of the catalog holds at most {', '.join(map(str, held))} forwards on "
            f"the ranks of plan {plan.label}",
            "Allow more microbatches in flight, or fewer stages.",
        )
    best = min(known, key=lambda one: one.seconds)
    return Synthesised(best, best, tuple(known), held, plan.partition)


def _timed(name: str, program: Program, profile: Profile, cluster: Cluster, plan: Plan) -> Timed:
    check(program)
    return Timed(name, program, on_cluster(program, profile, cluster, plan)[0])


def families(
    profile: Profile, cluster: Cluster, plan: Plan, work: int = WORK
) -> Iterator[Synthesised]:
    """What is found for a straight `plan`, and for a V on the same devices, two stages of half the
    size on each: there every rank may hold twice as many as the rank that holds most in `plan`; and
    what of the catalog interleaves such stages and holds as little. The V takes half as much work
    again. Raises as `synthesised`."""
    straight = synthesised(profile, cluster, plan, work)
    yield straight
    if plan.partition.chunks == 1 and (folded := as_v(profile, plan)):
        size = len(straight.most_held)
        room = (V_CHUNKS * max(straight.most_held),) * size
        with suppress(InvalidInput):  # no schedule of a V holds as little
            yield synthesised(profile, cluster, folded, work // 2, room)
        with suppress(InvalidInput):  # nor one that interleaves
            yield known_at(profile, cluster, in_turns(folded), room)


def in_turns(folded: Plan) -> Plan:
    """The same stages of a V, which go round its devices."""
    cut, size = folded.partition, folded.partition.pipeline_size
    stages = tuple(
        replace(stage, devices=cut.stages[number % size].devices)
        for number, stage in enumerate(cut.stages)
    )
    round_robin = replace(cut, stages=stages, placement=Placement.ROUND_ROBIN)
    return replace(folded, partition=round_robin, schedule=INTERLEAVED_ZB.name)


def as_v(profile: Profile, plan: Plan) -> Plan | None:
    """`plan`, a straight one, with two stages of about equal compute on each of its devices, which
    lie as a V; None of one stage, where there are too few layers, or where the cuts of `plan` have
    codecs."""
    devices = [stage.devices for stage in plan.partition.stages]
    count = V_CHUNKS * len(devices)
    if len(devices) == 1 or count > len(profile.layers) or plan.codecs:
        return None
    order = plan.partition.order
    stops = even_stops(profile.in_order(order), count)
    stages = zip((0, *stops), stops, (*devices, *devices[::-1]), strict=False)
    partition = Partition(tuple(Stage(*one) for one in stages), order, V_CHUNKS, Placement.V)
    return replace(plan, partition=partition, schedule=ZB_V.name, kept_order=())


def is_straight(plan: Plan) -> bool:
    """Whether it is one straight pipeline with a flush, for which orders are found."""
    return plan.partition.chunks == 1 and _is_one(plan)


def _is_one(plan: Plan) -> bool:
    """Whether it is one pipeline with a flush, straight or a V."""
    rule, is_whole = schedule(plan.schedule), plan.num_pipelines == 1 and not plan.recompute
    is_v = plan.partition.chunks == V_CHUNKS and plan.partition.placement is Placement.V
    is_plain = (plan.partition.chunks == 1 or is_v) and max(plan.partition.replicas) == 1
    return is_plain and is_whole and rule.flushes and rule.batched


def _check_one(plan: Plan) -> None:
    if not _is_one(plan):
        raise InvalidInput(
            f"plan {plan.label} is not one straight pipeline with a flush: orders are found for "
            "one stage per device (or two that lie as a V) without replicas, other chunks, "
            "parallel pipelines or recomputation",
            "Plan with '1f1b-flush', 'zb-h1', 'zb-h2' or 'zb-v', and one device for each stage.",
        )


def _members(shape: Shape) -> Iterator[tuple[str, Program]]:
    """Those of the catalog that flush and have as many chunks, which lie so, with their programs:
    those that admit the shape."""
    for rule in SCHEDULES.values():
        flushes = rule.trains and rule.consistent and rule.flushes and rule.batched
        lies = rule.placement is shape.placement
        if flushes and rule.chunked == (shape.chunks > 1) and lies:
            with suppress(InvalidInput):
                yield rule.name, lower(rule, shape)


def _held(program: Program) -> tuple[int, ...]:
    return tuple(map(int, most(program, in_flight(program.rows))))


def _costs(durations: PlanDurations, shape: Shape, held: tuple[int, ...]) -> StageCosts:
    holders = [shape.pipeline_rank_of(stage) for stage in range(shape.num_stages)]

    def computes(kind: type[Forward | BackwardInput | BackwardWeight]) -> tuple[float, ...]:
        return tuple(durations.compute(at, kind(stage, 0)) for stage, at in enumerate(holders))

    hops = [(stage, a, b) for stage, (a, b) in enumerate(pairwise(holders))]
    onward = (durations.transfer(Message(Flow.ACTIVATION, s, 0), a, b) for s, a, b in hops)
    back = (durations.transfer(Message(Flow.GRADIENT, s + 1, 0), b, a) for s, a, b in hops)
    halves = computes(Forward), computes(BackwardInput), computes(BackwardWeight)
    return StageCosts(*halves, tuple(onward), tuple(back), held)


def _sequences(program: Program) -> Sequences:
    size = program.shape.pipeline_size
    found = []
    for rank in range(program.num_ranks):
        part = program.part(rank)
        cells = zip(part.kind.tolist(), part.stage.tolist(), strict=True)
        letters = ((LETTERS.get(Kind(kind), ""), stage) for kind, stage in cells)
        found.append("".join(x.lower() if stage >= size else x for x, stage in letters))
    return tuple(found)


def _program(shape: Shape, costs: StageCosts, order: Sequences) -> Program:
    """The program of an order, with the updates at its end."""
    ranks: list[list[Compute]] = []
    for rank, own in enumerate(order):
        turns = [own[:place].count(kind) for place, kind in enumerate(own)]
        computes = zip(own, turns, strict=True)
        ranks.append([MAKES[k.upper()](costs.stage(rank, k), turn) for k, turn in computes])
        ranks[-1] += map(Step, shape.stages_of(rank))
    return complete(schedule("custom"), shape, Order.of(ranks))
