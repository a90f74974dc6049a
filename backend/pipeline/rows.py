"""Actions as columns: one row per action, whatever holds them (a program, a timeline)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from backend.pipeline.actions import (
    Action,
    Collective,
    Message,
    Recv,
    Send,
    Step,
)
from backend.pipeline.kinds import FACTS, Bools, Form, Ints, Is, Kind, kind_of

Group = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """`kind` is one of `Kind`. What an action does not have is -1.

    peer    the other rank of a message; of a collective the place of its group in `groups`
    """

    kind: Ints
    stage: Ints
    microbatch: Ints
    version: Ints
    peer: Ints
    groups: tuple[Group, ...] = ()

    @staticmethod
    def of(actions: Iterable[Action]) -> "Rows":
        """The rows of any actions; `actions` gives them back."""
        groups: dict[Group, int] = {}
        rows = [_row(action, groups) for action in actions]
        columns = np.array(rows, np.int64).reshape(-1, 5).T
        kind, stage, microbatch, version, peer = (np.ascontiguousarray(one) for one in columns)
        return Rows(kind, stage, microbatch, version, peer, tuple(groups))

    @staticmethod
    def joined(parts: Sequence["Rows"]) -> "Rows":
        """The rows of several, one after another."""
        if len(parts) < 2:
            return parts[0] if parts else Rows.of(())
        groups: dict[Group, int] = {}
        peers = []
        for part in parts:
            places = [groups.setdefault(group, len(groups)) for group in part.groups]
            peers.append(_renumbered(part, np.array([*places, -1])))
        kind, stage, microbatch, version = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("kind", "stage", "microbatch", "version")
        )
        return Rows(kind, stage, microbatch, version, np.concatenate(peers), tuple(groups))

    def __len__(self) -> int:
        return len(self.kind)

    def at(self, pick: Any) -> "Rows":
        """The rows that a slice, a mask or numbers pick."""
        kind, stage, microbatch = self.kind[pick], self.stage[pick], self.microbatch[pick]
        return Rows(kind, stage, microbatch, self.version[pick], self.peer[pick], self.groups)

    def are(self, table: Bools) -> Bools:
        """Which rows have a property: one of `kinds.Is`."""
        return np.asarray(table[self.kind])

    def action(self, row: int) -> Action:
        """One row as the executor and messages have it."""
        return next(self.at(slice(row, row + 1)).actions())

    def actions(self) -> Iterator[Action]:
        """Every row as the executor and messages have it."""
        columns = (self.kind, self.stage, self.microbatch, self.version, self.peer)
        for kind, *row in zip(*(column.tolist() for column in columns), strict=True):
            yield _MAKE[kind](*row, self.groups)

    def __eq__(self, other: object) -> bool:
        """Whether both say the same; groups may be numbered otherwise."""
        if not isinstance(other, Rows):
            return NotImplemented
        if len(self) != len(other):
            return False
        both = Rows.joined([self, other])
        mine, theirs = both.at(slice(0, len(self))), both.at(slice(len(self), None))
        return all(
            np.array_equal(getattr(mine, name), getattr(theirs, name))
            for name in ("kind", "stage", "microbatch", "version", "peer")
        )


def _renumbered(rows: Rows, places: Ints) -> Ints:
    """The peers where the group at each place is at another one."""
    collective = rows.are(Is.COLLECTIVE)
    return np.where(collective, places[np.where(collective, rows.peer, -1)], rows.peer)


Row = tuple[int, int, int, int, int]
"""(kind, stage, microbatch, version, peer)."""


def _row(action: Action, groups: dict[Group, int]) -> Row:
    kind = kind_of(action)
    if isinstance(action, Send | Recv):
        message, peer = action.message, action.to if isinstance(action, Send) else action.source
        return kind, message.stage, message.microbatch, -1, peer
    if isinstance(action, Collective):
        place = groups.setdefault(action.group, len(groups))
        return kind, action.stage, -1, action.version, place
    if isinstance(action, Step):
        return kind, action.stage, -1, action.version, -1
    return kind, action.stage, action.microbatch, action.version, -1


def _maker(kind: Kind) -> Any:
    """What makes an action of (stage, microbatch, version, peer, groups)."""
    facts = FACTS[kind]
    make: Any = facts.action
    if facts.form is Form.COLLECTIVE:
        return lambda stage, _, version, peer, groups: make(stage, groups[peer], version)
    if facts.form is Form.COMPUTE and facts.has_microbatch:
        return lambda stage, microbatch, version, *_: make(stage, microbatch, version)
    if facts.form is Form.COMPUTE:
        return lambda stage, _, version, *__: make(stage, version)
    flow = facts.flow
    return lambda stage, microbatch, _, peer, __: make(Message(flow, stage, microbatch), peer)  # type: ignore[arg-type]


_MAKE = [_maker(kind) for kind in Kind]
