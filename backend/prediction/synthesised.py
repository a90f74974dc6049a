"""An order found for a plan's predicted seconds, beside the schedules of the catalog."""

from collections.abc import Callable
from dataclasses import dataclass

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
from backend.pipeline.held import in_flight, most
from backend.pipeline.kinds import Kind
from backend.pipeline.lower import complete, lower
from backend.pipeline.order import Order
from backend.pipeline.program import Program
from backend.pipeline.schedules.catalog import SCHEDULES, schedule
from backend.pipeline.shape import Shape
from backend.pipeline.synthesis.costs import Sequences, StageCosts
from backend.pipeline.synthesis.improve import synthesise
from backend.pipeline.timeline import Timeline
from backend.pipeline.verify import check
from backend.planning.plan import Plan
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
    "synthesised". `idle` are the idle seconds of each stage."""

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
    """`found` is never slower than `best`, the fastest of `known`: the members of the catalog that
    hold on no stage more than `most_held` microbatches. It is that member itself where nothing
    faster was found."""

    found: Timed
    best: Timed
    known: tuple[Timed, ...]
    most_held: tuple[int, ...]

    @property
    def gain(self) -> float:
        """How many times as fast as `best`."""
        return self.best.seconds / self.found.seconds if self.found.seconds else 1.0

    @property
    def idle_saved(self) -> tuple[float, ...]:
        """Seconds for which each stage waits less than under `best`."""
        pairs = zip(self.best.idle, self.found.idle, strict=True)
        return tuple(before - after for before, after in pairs)


def synthesised(profile: Profile, cluster: Cluster, plan: Plan, work: int = WORK) -> Synthesised:
    """An order of one batch of `plan`, in which no stage holds more microbatches than under the
    plan's own schedule. Raises `InvalidInput` where the plan is no straight pipeline with a flush,
    else as `predict`; memory is not checked."""
    check_plan(profile, cluster, plan)
    _check_straight(plan)
    profile = at_microbatch(profile, plan.microbatch)
    shape = with_one_way(plan.shape(plan.batch), profile, plan.partition)
    if shape.one_way:
        raise InvalidInput(
            "the plan has stages to which no gradient comes back, and orders are found for "
            "pipelines that train every stage",
            "Train all layers, or keep the plan's schedule.",
        )

    def timed(name: str, program: Program) -> Timed:
        check(program)
        return Timed(name, program, on_cluster(program, profile, cluster, plan)[0])

    held = _held(lower(schedule(plan.schedule), shape))
    known = [timed(*one) for one in _members(shape) if all(map(int.__le__, _held(one[1]), held))]
    best = min(known, key=lambda one: one.seconds)
    costs = _costs(durations_in(shape, profile, cluster, plan), held)
    order = synthesise(costs, plan.batch, work, [_sequences(one.program) for one in known])
    found = timed("synthesised", _program(shape, order))
    return Synthesised(min(best, found, key=lambda one: one.seconds), best, tuple(known), held)


def is_straight(plan: Plan) -> bool:
    """Whether it is one straight pipeline with a flush, for which orders are found."""
    rule, is_whole = schedule(plan.schedule), plan.num_pipelines == 1 and not plan.recompute
    is_plain = plan.partition.chunks == 1 and max(plan.partition.replicas) == 1
    return is_plain and is_whole and rule.flushes and rule.batched


def _check_straight(plan: Plan) -> None:
    if not is_straight(plan):
        raise InvalidInput(
            f"plan {plan.label} is not one straight pipeline with a flush: orders are found for "
            "one stage per device without replicas, chunks, parallel pipelines or recomputation",
            "Plan with '1f1b-flush', 'zb-h1' or 'zb-h2', and one device for each stage.",
        )


def _members(shape: Shape) -> list[tuple[str, Program]]:
    """Those of the catalog that flush and have one chunk, with their programs."""
    return [
        (rule.name, lower(rule, shape))
        for rule in SCHEDULES.values()
        if rule.trains and rule.consistent and rule.flushes and rule.batched and not rule.chunked
    ]


def _held(program: Program) -> tuple[int, ...]:
    return tuple(map(int, most(program, in_flight(program.rows))))


def _costs(durations: PlanDurations, held: tuple[int, ...]) -> StageCosts:
    size = len(held)

    def computes(kind: type[Forward | BackwardInput | BackwardWeight]) -> tuple[float, ...]:
        return tuple(durations.compute(stage, kind(stage, 0)) for stage in range(size))

    hops = [(stage, stage + 1) for stage in range(size - 1)]
    onward = (durations.transfer(Message(Flow.ACTIVATION, a, 0), a, b) for a, b in hops)
    back = (durations.transfer(Message(Flow.GRADIENT, b, 0), b, a) for a, b in hops)
    halves = computes(Forward), computes(BackwardInput), computes(BackwardWeight)
    return StageCosts(*halves, tuple(onward), tuple(back), held)


def _sequences(program: Program) -> Sequences:
    return tuple(
        "".join(LETTERS.get(Kind(kind), "") for kind in program.part(rank).kind.tolist())
        for rank in range(program.num_ranks)
    )


def _program(shape: Shape, order: Sequences) -> Program:
    """The program of an order, with the update at its end."""
    ranks: list[list[Compute]] = []
    for stage, own in enumerate(order):
        turns = [own[:place].count(kind) for place, kind in enumerate(own)]
        ranks.append([MAKES[kind](stage, turn) for kind, turn in zip(own, turns, strict=True)])
        ranks[-1].append(Step(stage))
    return complete(schedule("custom"), shape, Order.of(ranks))
