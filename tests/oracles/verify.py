"""The verifier: every rule that a program breaks, a sentence each."""

from collections.abc import Iterator

from backend.pipeline.actions import Compute
from backend.pipeline.rules.faults import Fault, Rule
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.schedules.schedule import Schedule
from tests.oracles.held import in_flight, live_versions
from tests.oracles.message_rules import channel_faults, fault, group_faults, wait_faults
from tests.oracles.program import Program
from tests.oracles.rank_rules import RankRules
from tests.oracles.versions import policy

LARGE = 100_000
"""Actions that a shape may claim, whatever the program holds; for more it has to hold a half of
them before lists of that length are made."""


def verify(program: Program) -> tuple[Fault, ...]:
    """Every fault, rank by rank; empty for a sound program.

    A sound program runs to its end with blocking receives and all-reduces, whatever the
    timing; it computes everything once from the right inputs and weights, and holds no more
    than its schedule promises. Raises `InvalidInput` for an unknown schedule.
    """
    rule = schedule(program.schedule)
    if len(program.ranks) != program.shape.num_ranks:
        what = f"programs, but the shape has {program.shape.num_ranks} ranks"
        return (Fault(0, None, Rule.RANK, f"there are {len(program.ranks)} {what}"),)
    least = 2 * program.shape.num_stages * program.shape.num_microbatches
    if least > LARGE + 2 * program.num_actions:
        what = "actions, not half of the forwards and backwards that the shape claims"
        return (Fault(0, None, Rule.RANK, f"there are {program.num_actions} {what}"),)
    faults = (
        *_rank_faults(program, rule),
        *channel_faults(program),
        *group_faults(program),
        *wait_faults(program),
        *_bound_faults(program, rule),
    )
    return faults or tuple(_policy_faults(program, rule))


def _rank_faults(program: Program, rule: Schedule) -> Iterator[Fault]:
    for coordinates in program.shape.coordinates:
        walk = RankRules(coordinates, rule.updates(coordinates), rule.consistent, rule.local)
        for index, action in enumerate(program.ranks[coordinates.rank]):
            for broken, what in walk.check(action):
                yield fault(program, coordinates.rank, index, broken, what)
        for broken, what in walk.missing():
            yield fault(program, coordinates.rank, None, broken, what)


def _bound_faults(program: Program, rule: Schedule) -> Iterator[Fault]:
    """The first action of each rank after which it holds too much."""
    for coordinates in program.shape.coordinates:
        actions = program.ranks[coordinates.rank]
        counts = [("forwards in flight", in_flight(actions), rule.in_flight(coordinates))]
        for stage in coordinates.stages:
            name = f"versions of stage {stage}"
            counts.append((name, live_versions(actions, stage), rule.live(coordinates)))
        for what, held, bound in counts:
            if (most := max(held, default=0)) > bound:
                index = next(i for i, count in enumerate(held) if count > bound)
                text = f"is the first of up to {most} {what}; {rule.name} promises {bound}"
                yield fault(program, coordinates.rank, index, Rule.BOUND, text)


def _policy_faults(program: Program, rule: Schedule) -> Iterator[Fault]:
    """Versions that are consistent, but not those that the schedule's policy gives."""
    orders = tuple(tuple(_computes(program, rank)) for rank in range(len(program.ranks)))
    wanted = policy(rule)(program.shape, tuple(tuple(a for _, a in order) for order in orders))
    for rank, order in enumerate(orders):
        for (index, action), want in zip(order, wanted[rank], strict=True):
            if action != want:
                what = f"should have version {want.version} by the rule of {rule.name}"
                yield fault(program, rank, index, Rule.VERSION, what)


def _computes(program: Program, rank: int) -> Iterator[tuple[int, Compute]]:
    for index, action in enumerate(program.ranks[rank]):
        if isinstance(action, Compute):
            yield index, action
