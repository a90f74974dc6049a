"""What ranks hold while they run a program: forwards in flight, weight versions, how old they are.

Both follow from the order alone, without seconds. Memory is predicted from the peaks, and the
verifier compares them with what the schedule promises.
"""

import numpy as np

from backend.pipeline.kinds import Bools, Ints, Is, Kind
from backend.pipeline.order import count_before
from backend.pipeline.program import Program
from backend.pipeline.rows import Rows


def in_flight(rows: Rows) -> Ints:
    """After each row of one rank (or of several that end with nothing in flight), the forwards
    (of all stages) whose backward is still to come.

    Where nothing goes back, forwards hold nothing. With a split backward the activations are
    held until its weights' half.
    """
    ends = rows.are(Is.LEARNING)
    if not ends.any():
        return np.zeros(len(rows), np.int64)
    return np.cumsum((rows.kind == Kind.FORWARD).astype(np.int64) - ends)


def live_versions(program: Program, chunk: int) -> Ints:
    """After each row, the versions of its rank's stage number `chunk` that must be kept: the
    newest, and those that a later row reads. A version is named by the row that made it; it
    lives until it is superseded and read for the last time."""
    rows, bounds, rank = program.rows, program.bounds, program.rank
    here = rows.are(Is.COMPUTE) & (rows.stage // program.shape.pipeline_size == chunk)
    step, read = here & (rows.kind == Kind.STEP), here & rows.are(Is.READING)
    born, first = _born(program, step)
    superseded = np.append(born[1:], len(rows))
    superseded[first[1:] - 1] = bounds[1:]
    last = np.zeros(len(born), np.int64)
    reads = np.flatnonzero(read)
    last[first[rank[reads]] + rows.version[reads]] = reads
    size = len(rows) + 1
    end = np.maximum(superseded, last)
    change = np.bincount(born, minlength=size) - np.bincount(end, minlength=size)
    return np.asarray(np.cumsum(change)[:-1])


def _born(program: Program, step: Bools) -> tuple[Ints, Ints]:
    """The row that made each version, rank by rank, version 0 with the rank's first row; and
    the place of each rank's version 0 among them."""
    starts, stops = program.bounds[:-1], program.bounds[1:]
    made = np.concatenate(([0], np.cumsum(step)))
    first = np.concatenate(([0], np.cumsum(made[stops] - made[starts] + 1)))
    born = np.empty(first[-1], np.int64)
    zero = np.zeros(first[-1], np.bool_)
    zero[first[:-1]] = True
    born[zero], born[~zero] = starts, np.flatnonzero(step)
    return born, first


def most(program: Program, held: Ints) -> list[int]:
    """The most that each rank ever holds; 0 for one that does nothing."""
    parts = zip(program.bounds[:-1].tolist(), program.bounds[1:].tolist(), strict=True)
    return [int(held[first:stop].max(initial=0)) for first, stop in parts]


def staleness(program: Program) -> tuple[int, ...]:
    """Per stage the most updates between a forward and its backward, over its replicas."""
    rows, shape = program.rows, program.shape
    made = count_before(rows.kind == Kind.STEP, rows.stage // shape.pipeline_size, program.bounds)
    worst, back = np.zeros(shape.num_stages, np.int64), rows.are(Is.LEARNING)
    np.maximum.at(worst, rows.stage[back], (made - rows.version)[back])
    return tuple(worst.tolist())
