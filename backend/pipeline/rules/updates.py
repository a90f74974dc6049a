"""UPDATE: each step applies the microbatches of its update, and no step is missing."""

from collections.abc import Iterator

import numpy as np

from backend.pipeline.kinds import Bools, Ints, Is, Kind
from backend.pipeline.placement import holder_of, rank_of, turn_of
from backend.pipeline.rules.computes import at_row
from backend.pipeline.rules.faults import Broken, Fault, Rule, missing
from backend.pipeline.rules.places import NOWHERE, Places
from backend.pipeline.schedules.schedule import Schedule, once_per_batch, once_per_round
from backend.pipeline.shape import Shape

WIDE = 2**32
"""More updates than any rank makes."""


def updates(at: Places) -> Iterator[Broken | Fault]:
    """Steps that apply other microbatches than their update has, and updates without a step."""
    shape, order = at.shape, at.order
    place = order.rank * shape.chunks + order.stage // shape.pipeline_size
    total = np.repeat(_num_updates(at.rule, shape), shape.chunks)
    step = order.kind == Kind.STEP
    rows, made, own = at.computes[step], at.made[step], place[step]
    extra = made >= total[own]
    yield Broken(
        Rule.UPDATE,
        rows[extra],
        lambda row: f"is update {at_row(at, at.made, row) + 1} of {_total(at, total, row)}",
    )
    wrong = np.isin(own * WIDE + made, _disturbed(at, place)) & ~extra
    yield Broken(Rule.UPDATE, rows[wrong], lambda row: _instead(at, row))
    steps = np.bincount(own, minlength=len(total))
    for lacking in np.flatnonzero(steps < total).tolist():
        rank, chunk = divmod(lacking, shape.chunks)
        stage = shape.coordinates[rank].stages[chunk]
        what = f"makes {steps[lacking]} of {total[lacking]} updates of stage {stage}"
        yield missing(rank, Rule.UPDATE, what)


def _disturbed(at: Places, place: Ints) -> Ints:
    """The updates, by rank and chunk, that gradients come to which belong to another one, or
    that lack some of theirs."""
    shape, order = at.shape, at.order
    learning = Is.LEARNING[order.kind]
    number = _update_of(at.rule, shape, order.stage[learning], order.microbatch[learning])
    made = at.made[learning]
    wrong = number != made
    here = place[learning][wrong] * WIDE
    first = (at.weights[at.key] == at.computes)[learning][wrong]
    lacking = np.flatnonzero(at.weights == NOWHERE) if at.rule.trains else np.zeros(0, np.int64)
    stage, microbatch = np.divmod(lacking, shape.num_microbatches)
    there = rank_of(shape, stage, microbatch) * shape.chunks + stage // shape.pipeline_size
    late = there * WIDE + _update_of(at.rule, shape, stage, microbatch)
    return np.concatenate((here + made[wrong], (here + number[wrong])[first], late))


def _update_of(rule: Schedule, shape: Shape, stage: Ints, microbatch: Ints) -> Ints:
    """The update that applies each gradient."""
    pipeline_rank = holder_of(shape, stage)
    if rule.updates is once_per_batch:
        return turn_of(shape, microbatch) // shape.batch
    if rule.updates is once_per_round:
        return np.asarray(turn_of(shape, microbatch) // np.asarray(shape.replicas)[pipeline_rank])
    update = np.full((shape.pipeline_size, shape.num_microbatches), NOWHERE)
    for coordinates in shape.coordinates:
        for number, microbatches in enumerate(rule.updates(coordinates)):
            update[coordinates.pipeline_rank, list(microbatches)] = number
    return np.asarray(update[pipeline_rank, microbatch])


def _num_updates(rule: Schedule, shape: Shape) -> Ints:
    """How many updates each rank makes per chunk."""
    if rule.updates is once_per_batch:
        return np.array([coordinates.num_batches for coordinates in shape.coordinates])
    if rule.updates is once_per_round:
        return np.array([coordinates.segment_here for coordinates in shape.coordinates])
    return np.array([len(rule.updates(coordinates)) for coordinates in shape.coordinates])


def _total(at: Places, total: Ints, row: int) -> int:
    chunk = int(at.program.rows.stage[row]) // at.shape.pipeline_size
    return int(total[int(at.program.rank[row]) * at.shape.chunks + chunk])


def _instead(at: Places, row: int) -> str:
    """Which microbatches the step at `row` applies, and which it should."""
    rank, stage = int(at.program.rank[row]), int(at.program.rows.stage[row])
    number = at_row(at, at.made, row)
    own = (at.order.rank == rank) & (at.order.stage == stage) & (at.made == number)
    applied: Bools = own & Is.LEARNING[at.order.kind]
    found = set(at.order.microbatch[applied].tolist())
    wanted = at.rule.updates(at.shape.coordinates[rank])[number]
    return f"applies microbatches {numbers(found)} instead of {numbers(wanted)}"


def numbers(found: set[int] | tuple[int, ...]) -> str:
    """Numbers for a sentence."""
    return ", ".join(map(str, sorted(found))) or "none"
