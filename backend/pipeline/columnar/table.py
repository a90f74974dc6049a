"""A program as a table: one row per action, in arrays, for programs of millions of actions."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from backend.pipeline.actions import (
    Action,
    AllReduce,
    Average,
    Backward,
    BackwardInput,
    BackwardWeight,
    Flow,
    Forward,
    Message,
    Recompute,
    Recv,
    Send,
    Step,
)
from backend.pipeline.program import Program
from backend.pipeline.shape import Shape

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


class Kind:
    """The kind of a row. Computes come first; a flow's number is added to SEND and RECV.

    Plain numbers: numpy compares a column with an `IntEnum` four times as slowly."""

    FORWARD: Final = 0
    RECOMPUTE: Final = 1
    BACKWARD: Final = 2
    BACKWARD_INPUT: Final = 3
    BACKWARD_WEIGHT: Final = 4
    STEP: Final = 5
    SEND: Final = 6
    RECV: Final = 8
    ALL_REDUCE: Final = 10
    AVERAGE: Final = 11


NUM_COMPUTES = Kind.SEND
FLOWS = (Flow.ACTIVATION, Flow.GRADIENT)


@dataclass(frozen=True, eq=False)
class Table:
    """Rows `bounds[r]` up to `bounds[r + 1]` are rank r's program.

    microbatch  -1 where an action has none; version likewise
    peer        the other rank of a send or receive; the place in `groups` of a meeting's
                group; -1 elsewhere
    """

    schedule: str
    shape: Shape
    bounds: Ints
    kind: Ints
    stage: Ints
    microbatch: Ints
    version: Ints
    peer: Ints
    groups: tuple[tuple[int, ...], ...]

    @property
    def num_actions(self) -> int:
        return len(self.kind)

    @cached_property
    def rank(self) -> Ints:
        """The rank of every row."""
        return np.repeat(np.arange(len(self.bounds) - 1), np.diff(self.bounds))

    def equals(self, other: "Table") -> bool:
        """Whether both say the same."""
        mine, theirs = (
            (t.bounds, t.kind, t.stage, t.microbatch, t.version, t.peer) for t in (self, other)
        )
        same = (self.schedule, self.shape, self.groups)
        return same == (other.schedule, other.shape, other.groups) and all(
            np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True)
        )


Row = tuple[int, int, int, int, int]
"""(kind, stage, microbatch, version, peer)."""


def pack(program: Program) -> Table:
    """The table of any program, sound or not; `unpack` gives it back."""
    groups: dict[tuple[int, ...], int] = {}
    rows = [_row(action, groups) for actions in program.ranks for action in actions]
    columns = np.array(rows, np.int64).reshape(-1, 5).T
    bounds = np.cumsum([0, *map(len, program.ranks)])
    kind, stage, microbatch, version, peer = (np.ascontiguousarray(column) for column in columns)
    return Table(
        program.schedule,
        program.shape,
        bounds,
        kind,
        stage,
        microbatch,
        version,
        peer,
        tuple(groups),
    )


def unpack(table: Table) -> Program:
    """The program of a table."""
    columns = (table.kind, table.stage, table.microbatch, table.version, table.peer)
    actions = list(_actions(zip(*(c.tolist() for c in columns), strict=True), table.groups))
    ends = table.bounds.tolist()
    ranks = tuple(tuple(actions[a:b]) for a, b in pairwise(ends))
    return Program(table.schedule, table.shape, ranks)


COMPUTES: tuple[type[Forward | Recompute | Backward | BackwardInput | BackwardWeight], ...] = (
    Forward,
    Recompute,
    Backward,
    BackwardInput,
    BackwardWeight,
)
"""By `Kind`; a step has no microbatch and is not among them."""


def _row(action: Action, groups: dict[tuple[int, ...], int]) -> Row:
    match action:
        case Forward(stage, microbatch, version):
            return Kind.FORWARD, stage, microbatch, version, -1
        case Recompute(stage, microbatch, version):
            return Kind.RECOMPUTE, stage, microbatch, version, -1
        case Backward(stage, microbatch, version):
            return Kind.BACKWARD, stage, microbatch, version, -1
        case BackwardInput(stage, microbatch, version):
            return Kind.BACKWARD_INPUT, stage, microbatch, version, -1
        case BackwardWeight(stage, microbatch, version):
            return Kind.BACKWARD_WEIGHT, stage, microbatch, version, -1
        case Step(stage, version):
            return Kind.STEP, stage, -1, version, -1
        case Send(message, to):
            kind = Kind.SEND + FLOWS.index(message.flow)
            return kind, message.stage, message.microbatch, -1, to
        case Recv(message, source):
            kind = Kind.RECV + FLOWS.index(message.flow)
            return kind, message.stage, message.microbatch, -1, source
        case AllReduce(stage, group, version):
            return Kind.ALL_REDUCE, stage, -1, version, groups.setdefault(group, len(groups))
        case Average(stage, group, version):
            return Kind.AVERAGE, stage, -1, version, groups.setdefault(group, len(groups))


def _actions(rows: Iterator[Row], groups: tuple[tuple[int, ...], ...]) -> Iterator[Action]:
    for kind, stage, microbatch, version, peer in rows:
        if kind < Kind.STEP:
            yield COMPUTES[kind](stage, microbatch, version)
        elif kind == Kind.STEP:
            yield Step(stage, version)
        elif kind < Kind.RECV:
            yield Send(Message(FLOWS[kind - Kind.SEND], stage, microbatch), peer)
        elif kind < Kind.ALL_REDUCE:
            yield Recv(Message(FLOWS[kind - Kind.RECV], stage, microbatch), peer)
        elif kind == Kind.ALL_REDUCE:
            yield AllReduce(stage, groups[peer], version)
        else:
            yield Average(stage, groups[peer], version)
