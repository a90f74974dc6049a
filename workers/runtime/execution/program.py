"""The program of a run, verified, and what one rank takes of it.

The one place of the runtime that knows how a schedule becomes a program.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from backend.pipeline.actions import Action, AllReduce
from backend.pipeline.kinds import FACTS, Bools, Is, Kind, kind_of
from backend.pipeline.lower import lower
from backend.pipeline.order import count_before
from backend.pipeline.program import Program
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.schedules.forward_only import FORWARD_ONLY
from backend.pipeline.shape import Shape
from backend.pipeline.verify import check


@dataclass(frozen=True, slots=True)
class RankProgram:
    """A segment as one rank runs it; `applied` are the microbatches of the steps of each of its
    stages by version, over the replicas of its pipeline; `recomputed` says of each stage of the
    model whether its forwards run once more."""

    shape: Shape
    actions: Sequence[Action]
    applied: Mapping[int, Mapping[int, tuple[int, ...]]]
    recomputed: Bools


def training_program(name: str, shape: Shape, rank: int) -> RankProgram:
    """The part of `rank` in a segment of the schedule `name`. Raises what `schedule`, `lower` and
    `check` raise."""
    program = check(lower(schedule(name), shape))
    coordinates = program.shape.coordinates[rank]
    found = {stage: applied(program, stage, coordinates.pipeline) for stage in coordinates.stages}
    recomputed = ~schedule(name).idle_backward(program.shape) & shape.recompute
    return RankProgram(program.shape, program.actions(rank), found, recomputed)


def evaluation_program(shape: Shape, rank: int) -> RankProgram:
    """The same of an evaluation; `shape` is that of one pipeline, and a rank of another one has
    nothing to do."""
    program = lower(FORWARD_ONLY, shape)
    actions = program.actions(rank) if rank < program.num_ranks else ()
    return RankProgram(shape, actions, {}, np.zeros(shape.num_stages, np.bool_))


def last_reads(actions: Sequence[Action]) -> dict[tuple[int, int], int]:
    """(stage, version) -> the index of the last action of this rank that reads it."""
    return {
        (action.stage, action.version): index  # type: ignore[union-attr]
        for index, action in enumerate(actions)
        if FACTS[kind_of(action)].reads
    }


def before_reductions(actions: Sequence[Action]) -> frozenset[int]:
    """The indices of the backwards after which their stage's gradients are reduced next: what
    is complete within them may travel already."""
    last: dict[int, int] = {}
    found = set()
    for index, action in enumerate(actions):
        if isinstance(action, AllReduce):
            found.add(last.pop(action.stage, -1))
        elif FACTS[kind_of(action)].learns:
            last[action.stage] = index  # type: ignore[union-attr]
    return frozenset(found)


def applied(program: Program, stage: int, pipeline: int = 0) -> dict[int, tuple[int, ...]]:
    """version -> the microbatches whose gradients its `Step` applies, over all replicas."""
    rows, chunk = program.rows, program.rows.stage // program.shape.pipeline_size
    made = count_before(rows.kind == Kind.STEP, chunk, program.bounds)
    own = (rows.stage == stage) & np.isin(program.rank, program.shape.group_of(stage, pipeline))
    learning, step = own & rows.are(Is.LEARNING), own & (rows.kind == Kind.STEP)
    number, microbatch = made[learning], rows.microbatch[learning]
    order = np.lexsort((microbatch, number))
    versions = np.unique(made[step])
    parts = np.split(microbatch[order], np.searchsorted(number[order], versions)[1:])
    return {
        version + 1: tuple(part.tolist())
        for version, part in zip(versions.tolist(), parts, strict=True)
    }
