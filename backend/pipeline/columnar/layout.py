"""What the clock walks over: the rows that keep a rank busy, with their messages attached."""

from dataclasses import dataclass

import numpy as np

from backend.pipeline.columnar.table import NUM_COMPUTES, Bools, Ints, Kind, Table


@dataclass(frozen=True, slots=True)
class Layout:
    """The computes and meetings of a table ("nodes"), rank by rank.

    rows      their rows in the table; `bounds` parts them by rank
    needs     the message that a node waits for, -1 for none, or -2 - (its meeting)
    gives     the message that is sent when it is done, -1 for none
    wires     the wire of that message: every pair of ranks has its own, each way;
              `pairs[w]` is sender * ranks + taker of wire w
    meetings  how many ranks come to each meeting
    """

    rows: Ints
    bounds: Ints
    needs: Ints
    gives: Ints
    wires: Ints
    meetings: Ints
    num_messages: int
    num_wires: int
    pairs: Ints


def layout(table: Table) -> Layout | None:
    """None where messages do not stand beside the computes that need or made them: such programs
    are for `backend.pipeline.simulate`."""
    send, recv = is_send(table.kind), is_recv(table.kind)
    if not _beside(table, send, recv):
        return None
    rows = np.flatnonzero(~(send | recv))
    message = message_of(table)
    needs = np.full(len(rows), -1)
    gives, wires = needs.copy(), needs.copy()
    waiting, giving = recv[rows - 1] & (rows > 0), np.append(send, False)[rows + 1]
    needs[waiting] = message[rows[waiting] - 1]
    gives[giving] = message[rows[giving] + 1]
    names, wires[giving] = np.unique(wire_of(table)[rows[giving] + 1], return_inverse=True)
    meeting = table.kind[rows] >= Kind.ALL_REDUCE
    number, sizes = _meetings(table, rows[meeting])
    needs[meeting] = -2 - number
    return Layout(
        rows=rows,
        bounds=np.concatenate(([0], np.cumsum(~(send | recv))))[table.bounds],
        needs=needs,
        gives=gives,
        wires=wires,
        meetings=sizes,
        num_messages=2 * table.shape.num_stages * table.shape.microbatches,
        num_wires=len(names),
        pairs=names,
    )


def is_send(kind: Ints) -> Bools:
    """Rows that send, whatever the flow."""
    return np.asarray((kind >= Kind.SEND) & (kind < Kind.RECV))


def is_recv(kind: Ints) -> Bools:
    """Rows that receive."""
    return np.asarray((kind >= Kind.RECV) & (kind < Kind.ALL_REDUCE))


def message_of(table: Table) -> Ints:
    """A number per message: of rows that are no messages it means nothing."""
    flow_and_stage = table.kind % 2 * table.shape.num_stages + table.stage
    return np.asarray(flow_and_stage * table.shape.microbatches + table.microbatch)


def wire_of(table: Table) -> Ints:
    """A number per pair of ranks, for rows that send."""
    return np.asarray(table.rank * table.shape.num_ranks + table.peer)


def _beside(table: Table, send: Bools, recv: Bools) -> bool:
    """Whether each send follows a compute and each receive precedes one, on the same rank."""
    compute = np.concatenate(([False], table.kind < NUM_COMPUTES, [False]))
    first, last = np.zeros(len(send), np.bool_), np.zeros(len(send), np.bool_)
    starts = table.bounds[:-1][np.diff(table.bounds) > 0]
    ends = table.bounds[1:][np.diff(table.bounds) > 0]
    first[starts], last[ends - 1] = True, True
    sent = (compute[:-2] & ~first)[send].all()
    return bool(sent and (compute[2:] & ~last)[recv].all())


def _meetings(table: Table, rows: Ints) -> tuple[Ints, Ints]:
    """The number of each row's meeting, and how many ranks come to each."""
    if not len(rows):
        return rows, rows
    versions = int(table.version[rows].max(initial=0)) + 1
    name = (table.kind[rows] * table.shape.num_stages + table.stage[rows]) * versions
    name = (name + table.version[rows]) * max(1, len(table.groups)) + table.peer[rows]
    _, number, sizes = np.unique(name, return_inverse=True, return_counts=True)
    return number, sizes
