"""The verifier: every rule that a program breaks, a sentence each."""

from collections.abc import Iterator

import numpy as np

from backend.errors import StageflowError
from backend.pipeline.clock.walk import stuck
from backend.pipeline.program import Program
from backend.pipeline.rules.bounds import bounds
from backend.pipeline.rules.collectives import in_groups, partners
from backend.pipeline.rules.computes import at_row, in_order, once, versions
from backend.pipeline.rules.faults import Broken, Fault, Rule, said
from backend.pipeline.rules.messages import channels, messages
from backend.pipeline.rules.places import Places, StagePlaces
from backend.pipeline.rules.updates import updates
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.versions import number

LARGE = 100_000
"""Actions that a shape may claim, whatever the program holds; for more it has to hold a half of
them before columns of that length are made."""


class ProgramUnsound(StageflowError):
    """A program that must not run; `faults` says why."""

    advice = (
        "Put the order right there. `stageflow program import FILE`, and Import on Compare "
        "schedules, name every fault."
    )

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        self.faults = faults
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        super().__init__(f"the program is unsound: {faults[0]}{more}")


def verify(program: Program) -> tuple[Fault, ...]:
    """Every fault, those of single ranks first, rank by rank; empty for a sound program.

    A sound program runs to its end with blocking receives and all-reduces, whatever the
    timing; it computes everything once from the right inputs and weights, and holds no more
    than its schedule promises. Rows that stand where they do not belong count as missing
    where they do, and what ranks hold counts where all else is right. Raises `InvalidInput`
    for an unknown schedule.
    """
    rule, shape = schedule(program.schedule), program.shape
    if program.num_ranks != shape.num_ranks:
        what = f"programs, but the shape has {shape.num_ranks} ranks"
        return (Fault(0, None, Rule.RANK, f"there are {program.num_ranks} {what}"),)
    if 2 * shape.num_stages * shape.num_microbatches > LARGE + 2 * program.num_actions:
        what = "actions, not half of the forwards and backwards that the shape claims"
        return (Fault(0, None, Rule.RANK, f"there are {program.num_actions} {what}"),)
    stage_places = StagePlaces.of(program)
    at = Places.of(program, rule, stage_places.placed)
    found = said(program, _of_ranks(stage_places, at))
    found += said(program, channels(at))
    found += said(program, partners(at))
    found += said(program, _waiting(program))
    found = found or said(program, bounds(program, rule))
    return tuple(found or said(program, _policy(at)))


def check(program: Program) -> Program:
    """The same program; raises `ProgramUnsound` with the faults of an unsound one."""
    if faults := verify(program):
        raise ProgramUnsound(faults)
    return program


def _of_ranks(stage_places: StagePlaces, at: Places) -> Iterator[Broken | Fault]:
    if not at.placed.all():
        yield from stage_places.broken()
    for rule in (once, in_order, versions, updates, messages, in_groups):
        yield from rule(at)


def _waiting(program: Program) -> Iterator[Broken]:
    places = stuck(program)
    rows = np.array([program.bounds[rank] + index for rank, index in places], np.int64)
    yield Broken(Rule.WAIT, rows, "waits for ever")


def _policy(at: Places) -> Iterator[Broken]:
    """Versions that are consistent, but not those that the schedule's policy gives."""
    wanted = number(at.rule.versions, at.shape, at.order)
    wrong = at.computes[wanted != at.version]
    yield Broken(
        Rule.VERSION,
        wrong,
        lambda row: f"should have version {at_row(at, wanted, row)} by the rule of {at.rule.name}",
    )
