"""Whether a table keeps every rule of the verifier, for whole columns at once.

It says yes or no. Yes is certain; at the first doubt it says no, and the readable verifier
has the last word and finds the sentences.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from backend.pipeline.columnar.bounds import in_flight_as_promised, live_as_promised
from backend.pipeline.columnar.layout import is_recv, is_send, message_of
from backend.pipeline.columnar.numbering import KNOWN, count_before, number
from backend.pipeline.columnar.orders import Order
from backend.pipeline.columnar.seating import rank_of, turn_of
from backend.pipeline.columnar.table import NUM_COMPUTES, Bools, Ints, Kind, Table
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.schedules.schedule import Schedule, once_per_batch, once_per_round
from backend.pipeline.shape import Shape

NOWHERE = -1


def is_sound(table: Table) -> bool:
    """Whether all rules hold but the last, that no rank waits for ever: a simulation to the
    end shows that."""
    rule = schedule(table.schedule)
    if len(table.bounds) != table.shape.num_ranks + 1 or rule.versions not in KNOWN:
        return False
    if not _in_place(table):
        return False
    return all(Checks.of(table, rule).answers())


def _in_place(table: Table) -> bool:
    """SEAT: every row is on the rank it belongs to, with numbers that exist."""
    shape, rank = table.shape, table.rank
    compute = table.kind < NUM_COMPUTES
    works = compute & (table.kind != Kind.STEP)
    send, recv = is_send(table.kind), is_recv(table.kind)
    if not _within(table.stage, shape.num_stages) or not (table.version[compute] >= 0).all():
        return False
    if not _within(table.microbatch[works | send | recv], shape.microbatches):
        return False
    stage, microbatch = table.stage, table.microbatch
    first = np.asarray(shape.first_ranks)
    position = np.searchsorted(first, rank % shape.num_devices, side="right") - 1
    onward = np.where(table.kind % 2 == 0, 1, -1)
    if not _within((stage + onward)[send | recv], shape.num_stages):
        return False
    taken = stage + np.where(send | recv, onward, 0)
    maker, taker = rank_of(shape, stage, microbatch), rank_of(shape, taken, microbatch)
    return bool(
        (stage % shape.positions == position)[~(send | recv)].all()
        and (maker == rank)[works | send].all()
        and (taker == rank)[recv].all()
        and (table.peer == taker)[send].all()
        and (table.peer == maker)[recv].all()
    )


def _within(values: Ints, end: int) -> bool:
    return bool(((values >= 0) & (values < end)).all())


@dataclass(frozen=True, slots=True)
class Checks:
    """Rows by what they do (`NOWHERE`, or a row, per stage * microbatches + microbatch):
    forwards, recomputations, both halves of the backward; and by message."""

    table: Table
    rule: Schedule
    computes: Ints
    order: Order
    made: Ints
    forward: Ints
    again: Ints
    inputs: Ints
    weights: Ints

    @staticmethod
    def of(table: Table, rule: Schedule) -> "Checks":
        computes = np.flatnonzero(table.kind < NUM_COMPUTES)
        columns = (table.rank, table.kind, table.stage, table.microbatch)
        rank, kind, stage, microbatch = (column[computes] for column in columns)
        bounds = np.searchsorted(computes, table.bounds)
        order = Order(bounds, rank, kind, stage, microbatch)
        chunk = stage // table.shape.positions
        whole = table.kind == Kind.BACKWARD
        return Checks(
            table=table,
            rule=rule,
            computes=computes,
            order=order,
            made=count_before(kind == Kind.STEP, chunk, bounds),
            forward=_places(table, table.kind == Kind.FORWARD),
            again=_places(table, table.kind == Kind.RECOMPUTE),
            inputs=_places(table, whole | (table.kind == Kind.BACKWARD_INPUT)),
            weights=_places(table, whole | (table.kind == Kind.BACKWARD_WEIGHT)),
        )

    def answers(self) -> Iterator[bool]:
        yield self.each_once()
        yield self.in_order()
        yield self.updates_as_promised()
        yield self.versions_as_promised()
        yield self.messages_meet()
        yield self.groups_meet()
        version = self.table.version[self.computes]
        yield in_flight_as_promised(self.rule, self.table.shape, self.order)
        yield live_as_promised(self.rule, self.table.shape, self.order, version)

    def each_once(self) -> bool:
        """Every forward; every half of a backward, and the recomputation where there is one."""
        kind, shape = self.table.kind, self.table.shape
        wanted = shape.num_stages * shape.microbatches
        backs = wanted if self.rule.trains else 0
        again = backs if shape.recompute else 0
        whole = int((kind == Kind.BACKWARD).sum())
        counts = (
            (int((kind == Kind.FORWARD).sum()), self.forward, wanted),
            (int((kind == Kind.RECOMPUTE).sum()), self.again, again),
            (whole + int((kind == Kind.BACKWARD_INPUT).sum()), self.inputs, backs),
            (whole + int((kind == Kind.BACKWARD_WEIGHT).sum()), self.weights, backs),
        )
        return all(
            count == right and int((places >= 0).sum()) == right for count, places, right in counts
        )

    def in_order(self) -> bool:
        """A backward after its forward, its weights' half after its inputs', a recomputation
        between; all of one microbatch and stage are on one rank."""
        if not self.rule.trains:
            return True
        ready = self.again if self.table.shape.recompute else self.forward
        between = (self.forward <= ready).all() and (ready < self.inputs).all()
        return bool(between and (self.inputs <= self.weights).all())

    def updates_as_promised(self) -> bool:
        """Each step applies the microbatches of its update, and no step is missing."""
        shape, order = self.table.shape, self.order
        applied = (order.kind == Kind.BACKWARD) | (order.kind == Kind.BACKWARD_WEIGHT)
        stage, microbatch = order.stage[applied], order.microbatch[applied]
        update, wanted = _updates(self.rule, shape, stage, microbatch)
        step = order.kind == Kind.STEP
        place = order.rank[step] * shape.chunks + order.stage[step] // shape.positions
        steps = np.bincount(place, minlength=wanted.size)
        return bool((update == self.made[applied]).all() and (steps == wanted.ravel()).all())

    def versions_as_promised(self) -> bool:
        """By the policy; none before it is made; a backward's is its forward's."""
        order, version = self.order, self.table.version[self.computes]
        if not np.array_equal(number(self.rule.versions, self.table.shape, order), version):
            return False
        reads = order.kind != Kind.STEP
        if not (version[reads] <= self.made[reads]).all():
            return False
        if not self.rule.consistent:
            return True
        key = order.stage * self.table.shape.microbatches + order.microbatch
        read = self.table.version[self.forward[key[reads]]]
        return bool((read == version[reads]).all())

    def messages_meet(self) -> bool:
        """One send after what makes it and one receive before what needs it wherever a
        message changes rank; what stays is made before; channels keep their order."""
        table = self.table
        send, recv = is_send(table.kind), is_recv(table.kind)
        shape, message = table.shape, message_of(table)
        size = 2 * shape.num_stages * shape.microbatches
        sent, received = np.full(size, NOWHERE), np.full(size, NOWHERE)
        sent[message[send]] = np.flatnonzero(send)
        received[message[recv]] = np.flatnonzero(recv)
        made = np.concatenate((self.forward, self.inputs))
        used = _used(shape, self.forward, self.inputs)
        travels = (made >= 0) & (used >= 0)
        apart = np.zeros_like(travels)
        rank = table.rank
        apart[travels] = rank[made[travels]] != rank[used[travels]]
        count = int(apart.sum())
        return bool(
            count == int(send.sum()) == int(recv.sum())
            and (sent[apart] > made[apart]).all()
            and (received[apart] >= 0).all()
            and (received[apart] < used[apart]).all()
            and (made[travels & ~apart] < used[travels & ~apart]).all()
            and self._first_in_first_out(send, recv, message)
        )

    def _first_in_first_out(self, send: Bools, recv: Bools, message: Ints) -> bool:
        """Messages in the order of their sends, channel by channel, and of their receives."""
        table, rank = self.table, self.table.rank
        ranks = table.shape.num_ranks
        flow = table.kind % 2
        out = ((rank * ranks + table.peer) * 2 + flow)[send]
        into = ((table.peer * ranks + rank) * 2 + flow)[recv]
        posted = message[send][np.argsort(out, kind="stable")]
        taken = message[recv][np.argsort(into, kind="stable")]
        return bool(np.array_equal(posted, taken))

    def groups_meet(self) -> bool:
        """Just before each step of a replicated stage the all-reduce of its version, just
        after each step of several lanes the averaging; the same in the whole group."""
        table, shape = self.table, self.table.shape
        step = np.flatnonzero(table.kind == Kind.STEP)
        replicated = np.asarray(shape.replicas)[table.stage[step] % shape.positions] > 1
        return self._meetings(step[replicated], Kind.ALL_REDUCE, -1) and self._meetings(
            step if shape.lanes > 1 else step[:0], Kind.AVERAGE, 1
        )

    def _meetings(self, step: Ints, kind: int, beside: int) -> bool:
        table, shape = self.table, self.table.shape
        row = step + beside
        if len(row) != int((table.kind == kind).sum()):
            return False
        if not len(row):
            return True
        if row.min() < 0 or row.max() >= table.num_actions:
            return False
        rank = table.rank
        same = (table.kind[row] == kind) & (table.stage[row] == table.stage[step])
        same &= (table.version[row] == table.version[step]) & (rank[row] == rank[step])
        if not same.all() or not _within(table.peer[row], len(table.groups)):
            return False
        steps = np.stack((table.stage[step], table.version[step], table.peer[row]))
        parts = np.searchsorted(rank[step], np.arange(shape.num_ranks + 1))
        own = [steps[:, a:b] for a, b in pairwise(parts.tolist())]
        for seat in shape.seats:
            group = shape.group_of(seat.position, seat.lane)
            if kind == Kind.AVERAGE:
                group = shape.sharing(seat.rank)
            mine = own[seat.rank]
            if mine.size and any(table.groups[g] != group for g in np.unique(mine[2]).tolist()):
                return False
            if mine.size and not np.array_equal(mine, own[group[0]]):
                return False
        return True


def _updates(rule: Schedule, shape: Shape, stage: Ints, microbatch: Ints) -> tuple[Ints, Ints]:
    """The update that applies each gradient, and how many updates each rank makes per chunk."""
    wanted = np.zeros((shape.num_ranks, shape.chunks), np.int64)
    position = stage % shape.positions
    if rule.updates in (once_per_batch, once_per_round):
        whole = rule.updates is once_per_batch
        size = np.full(shape.positions, shape.batch) if whole else np.asarray(shape.replicas)
        for seat in shape.seats:
            wanted[seat.rank] = shape.lane_microbatches // size[seat.position]
        return turn_of(shape, microbatch) // size[position], wanted
    update = np.full((shape.positions, shape.microbatches), NOWHERE)
    for seat in shape.seats:
        updates = rule.updates(seat)
        for which, microbatches in enumerate(updates):
            update[seat.position, list(microbatches)] = which
        wanted[seat.rank] = len(updates)
    return update[position, microbatch], wanted


def _places(table: Table, mask: Bools) -> Ints:
    """The row of each (stage, microbatch) among those of `mask`."""
    shape = table.shape
    places = np.full(shape.num_stages * shape.microbatches, NOWHERE)
    rows = np.flatnonzero(mask)
    places[table.stage[rows] * shape.microbatches + table.microbatch[rows]] = rows
    return places


def _used(shape: Shape, forward: Ints, inputs: Ints) -> Ints:
    """Per message the row that needs it: the next stage's forward, the one before's backward."""
    one = shape.microbatches
    gone = np.full(one, NOWHERE)
    return np.concatenate((forward[one:], gone, gone, inputs[:-one]))
