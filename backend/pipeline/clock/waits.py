"""What waits for what, written once: the nodes that a clock walks over, and what each waits for.

Every action waits for the one before it on its rank. Besides,

    receive                waits for its send on the source rank
    all-reduce, averaging  wait until every rank of the group has come to it

and nothing else waits: a send is posted and the rank goes on. (Where no gradient ever answers it,
ranks bound how many are on their way; that is not simulated.) Verifier and simulator walk over
this; the executor obeys the same table. It knows no seconds.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from backend.errors import StageflowError
from backend.pipeline.kinds import FLOW, Bools, Ints, Is
from backend.pipeline.notation import format_action
from backend.pipeline.rows import Rows

if TYPE_CHECKING:
    from backend.pipeline.program import Program

MOST_COUNTED = 1_000_000
"""Pairs of ranks up to which all are counted, to find those that send; of more these are sorted."""
Place = tuple[int, int]
"""An action of a program: (rank, index)."""


class ProgramStuck(StageflowError):
    """Some ranks wait for ever: `places` are the actions at which they stand."""

    def __init__(self, program: "Program", places: tuple[Place, ...]) -> None:
        self.places = places
        stands = ", ".join(
            f"rank {rank} at action {index} "
            f"({format_action(program.rows.action(int(program.bounds[rank]) + index))})"
            for rank, index in places
        )
        super().__init__(f"program {program.schedule!r} waits for ever: {stands}")


@dataclass(frozen=True, slots=True)
class Waits:
    """The rows of a program as nodes, rank by rank. A receive just before a compute and a send
    just after one are parts of its node; any other message is a node alone.

    rows         the row of each node; `bounds` parts the nodes by rank
    alone        nodes that are a message alone
    needs        the message that a node waits for, -1 for none, or -2 - (its collective)
    gives        the message that is sent when it is done, -1 for none
    channels     the channel of that message: every pair of ranks has its own, each way;
                 `pairs[c]` is sender * ranks + receiver of channel c
    members      how many ranks must come to each collective
    """

    rows: Ints
    bounds: Ints
    alone: Bools
    needs: Ints
    gives: Ints
    channels: Ints
    members: Ints
    num_messages: int
    pairs: Ints

    @property
    def met(self) -> "Waits":
        """The nodes that wait for others or that others wait for, without the rest."""
        pick = np.flatnonzero((self.needs != -1) | (self.gives >= 0))
        return replace(
            self,
            rows=self.rows[pick],
            bounds=np.searchsorted(pick, self.bounds),
            alone=self.alone[pick],
            needs=self.needs[pick],
            gives=self.gives[pick],
            channels=self.channels[pick],
        )

    @property
    def receives(self) -> Ints:
        """The row of the receive of each node that waits for a message."""
        waiting = self.needs >= 0
        return self.rows[waiting] - ~self.alone[waiting]

    @property
    def sends(self) -> Ints:
        """The row of the send of each node that gives a message."""
        giving = self.gives >= 0
        return self.rows[giving] + ~self.alone[giving]


def waits(program: "Program") -> Waits:
    """The nodes of any program, sound or not."""
    rows = program.rows
    send, recv, compute = rows.are(Is.SEND), rows.are(Is.RECV), rows.are(Is.COMPUTE)
    first = np.zeros(len(rows) + 1, np.bool_)
    first[program.bounds] = True
    sent = send & np.concatenate(([False], compute[:-1])) & ~first[:-1]
    awaited = recv & np.concatenate((compute[1:], [False])) & ~first[1:]
    beside = sent | awaited
    nodes = np.flatnonzero(~beside)
    alone = (send | recv)[nodes]
    message, num_messages = _messages(program, send, recv)
    needs, gives = np.full(len(nodes), -1), np.full(len(nodes), -1)
    waiting = np.concatenate(([False], awaited))[nodes]
    giving = np.concatenate((sent, [False]))[nodes + 1]
    needs[waiting], gives[giving] = message[nodes[waiting] - 1], message[nodes[giving] + 1]
    if alone.any():
        lone_recv, lone_send = recv[nodes], send[nodes]
        needs[lone_recv], gives[lone_send] = message[nodes[lone_recv]], message[nodes[lone_send]]
        waiting, giving = waiting | lone_recv, giving | lone_send
    collective = rows.are(Is.COLLECTIVE)[nodes]
    number, members = _collectives(program, nodes[collective])
    needs[collective] = -2 - number
    places = nodes[giving] + ~alone[giving]
    pairs, channels = _channels(program.rank[places], rows.peer[places], program.num_ranks)
    every = np.full(len(nodes), -1)
    every[giving] = channels
    bounds = np.concatenate(([0], np.cumsum(~beside)))[program.bounds]
    return Waits(nodes, bounds, alone, needs, gives, every, members, num_messages, pairs)


def _channels(source: Ints, to: Ints, num_ranks: int) -> tuple[Ints, Ints]:
    """The pairs of ranks that send (a line of sources, one of receivers), and the place of each
    row's among them."""
    wide = int(to.max(initial=0)) + 1
    pair = source * wide + to
    if wide > num_ranks or wide * num_ranks > MOST_COUNTED:  # an unsound one sends to any number
        names, number = np.unique(pair, return_inverse=True)
        return np.stack((names // wide, names % wide)), number
    is_used = np.bincount(pair) > 0
    names, number = np.flatnonzero(is_used), np.cumsum(is_used) - 1
    return np.stack((names // wide, names % wide)), number[pair]


def _messages(program: "Program", send: Bools, recv: Bools) -> tuple[Ints, int]:
    """A number per message: of rows that are no messages it means nothing."""
    rows, shape = program.rows, program.shape
    size = 2 * shape.num_stages * shape.num_microbatches
    number = message_of(rows, shape.num_stages, shape.num_microbatches)
    ends = np.full((2, size), -1)
    ranks = max(program.num_ranks, 1)
    for which, mask in enumerate((send, recv)):
        own = number[mask]
        if not _within(own, size) or not _within(rows.peer[mask], ranks):
            return _named(program, send, recv)
        here, there = program.rank[mask], rows.peer[mask]
        ends[which, own] = here * ranks + there if which == 0 else there * ranks + here
        if int((ends[which] >= 0).sum()) < len(own):
            return _named(program, send, recv)
    met = (ends >= 0).all(axis=0)
    if (ends[0] != ends[1])[met].any():
        return _named(program, send, recv)
    return number, size


def message_of(rows: Rows, num_stages: int, num_microbatches: int) -> Ints:
    """A number per flow, stage and microbatch."""
    return (FLOW[rows.kind] * num_stages + rows.stage) * num_microbatches + rows.microbatch


def _within(values: Ints, end: int) -> bool:
    return bool(((values >= 0) & (values < end)).all())


def _named(program: "Program", send: Bools, recv: Bools) -> tuple[Ints, int]:
    """The same for messages that are sent twice, or from and to ranks that nobody expects: each
    receive meets the first send of its message that no receive before it has met."""
    rows, rank = program.rows, program.rank
    source, to = np.where(send, rank, rows.peer), np.where(send, rows.peer, rank)
    message = coded(FLOW[rows.kind], rows.stage, rows.microbatch, source, to)
    number, turn = np.full(len(rows), -1), np.zeros(len(rows), np.int64)
    for mask in (send, recv):
        turn[mask] = nth(message[mask])
    both = send | recv
    number[both] = coded(message[both], turn[both])
    return number, int(number.max(initial=-1)) + 1


def _collectives(program: "Program", places: Ints) -> tuple[Ints, Ints]:
    """The number of each row's collective, and how many ranks must come to each: those that
    come, or more where one of its group never does."""
    if not len(places):
        return places, places
    rows, rank = program.rows.at(places), program.rank[places]
    name = coded(rows.kind, rows.stage, rows.version, rows.peer)
    number = coded(name, nth(coded(name, rank)))
    first = np.unique(number, return_index=True)[1]
    come = np.bincount(number)
    belongs = np.zeros((len(rows.groups), program.num_ranks), np.bool_)
    for members, group in zip(belongs, rows.groups, strict=True):
        members[[one for one in group if 0 <= one < program.num_ranks]] = True
    expected = np.bincount(number, belongs[rows.peer, rank])
    asked = np.array([len(group) for group in rows.groups])[rows.peer[first]]
    return number, np.where(expected < asked, come + 1, come)


def coded(*columns: Ints) -> Ints:
    """A number from 0 per row, the same where all columns are."""
    code = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        _, place = np.unique(column, return_inverse=True)
        code = code * (int(place.max(initial=0)) + 1) + place
        if int(code.max(initial=0)) > 2**31:
            code = np.unique(code, return_inverse=True)[1]
    return np.asarray(np.unique(code, return_inverse=True)[1])


def sorting(number: Ints) -> Ints:
    """The order that sorts numbers from 0, equal ones as they stand; small ones sort sooner."""
    narrow = number.astype(np.min_scalar_type(int(number.max(initial=0))))
    return np.asarray(np.argsort(narrow, kind="stable"))


def nth(name: Ints) -> Ints:
    """How many rows before each have its name."""
    order = sorting(name)
    ordered = name[order]
    starts = np.concatenate(([True], ordered[1:] != ordered[:-1]))[: len(name)]
    run = np.arange(len(name))
    found = np.empty(len(name), np.int64)
    found[order] = run - np.maximum.accumulate(np.where(starts, run, 0))
    return found
