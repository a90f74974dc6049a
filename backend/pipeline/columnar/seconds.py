"""The durations of every row, asked for once per rank, stage and kind."""

from collections.abc import Callable

import numpy as np

from backend.pipeline.actions import Compute, Message, Step
from backend.pipeline.columnar.layout import is_send
from backend.pipeline.columnar.table import COMPUTES, FLOWS, NUM_COMPUTES, Floats, Ints, Kind, Table
from backend.pipeline.simulate import Durations


def seconds(table: Table, durations: Durations) -> Floats:
    """Per row: of a compute, of a send's transfer, of a meeting; 0 for a receive. All
    microbatches and versions must take the same time, as they do with every profile."""
    found = np.zeros(table.num_actions)
    compute = np.flatnonzero(table.kind < NUM_COMPUTES)
    found[compute] = _computes(table, compute, durations)
    send = np.flatnonzero(is_send(table.kind))
    found[send] = _transfers(table, send, durations)
    meeting = np.flatnonzero(table.kind >= Kind.ALL_REDUCE)
    if len(meeting):
        found[meeting] = _meetings(table, meeting, durations)
    return found


def _computes(table: Table, rows: Ints, durations: Durations) -> Floats:
    shape, rank, kind = table.shape, table.rank[rows], table.kind[rows]
    chunk = table.stage[rows] // shape.positions

    def ask(code: int) -> float:
        where, number = divmod(code, NUM_COMPUTES)
        at, chunk = divmod(where, shape.chunks)
        stage = chunk * shape.positions + shape.seats[at].position
        action: Compute = Step(stage) if number == Kind.STEP else COMPUTES[number](stage, 0)
        return durations.compute(at, action)

    size = shape.num_ranks * shape.chunks * NUM_COMPUTES
    return _asked((rank * shape.chunks + chunk) * NUM_COMPUTES + kind, size, ask)


def _transfers(table: Table, rows: Ints, durations: Durations) -> Floats:
    shape = table.shape
    rank, to = table.rank[rows], table.peer[rows]
    ranks, most = shape.num_ranks, max(shape.replicas)
    flow_and_stage = table.kind[rows] % 2 * shape.num_stages + table.stage[rows]
    first = np.asarray(shape.first_ranks)
    place = to % shape.num_devices
    position = np.searchsorted(first, place, side="right") - 1
    code = (flow_and_stage * ranks + rank) * most + place - first[position]

    def ask(code: int) -> float:
        rest, replica = divmod(code, most)
        rest, source = divmod(rest, ranks)
        flow, stage = divmod(rest, shape.num_stages)
        towards = 1 if flow == 0 else -1
        lane = source // shape.num_devices * shape.num_devices
        to = lane + int(first[(stage + towards) % shape.positions]) + replica
        return durations.transfer(Message(FLOWS[flow], stage, 0), source, to)

    return _asked(code, 2 * shape.num_stages * ranks * most, ask)


def _meetings(table: Table, rows: Ints, durations: Durations) -> Floats:
    count = len(table.groups)

    def ask(code: int) -> float:
        rest, group = divmod(code, count)
        stage, averages = divmod(rest, 2)
        find = durations.average if averages else durations.all_reduce
        return find(stage, table.groups[group])

    averages = table.kind[rows] - Kind.ALL_REDUCE
    code = (table.stage[rows] * 2 + averages) * count + table.peer[rows]
    return _asked(code, table.shape.num_stages * 2 * count, ask)


def _asked(code: Ints, size: int, ask: Callable[[int], float]) -> Floats:
    """`ask` of every code, asked once each."""
    answers = np.zeros(size)
    for one in np.flatnonzero(np.bincount(code, minlength=size)).tolist():
        answers[one] = ask(one)
    return np.asarray(answers[code])
