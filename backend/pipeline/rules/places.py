"""Which rows stand where they belong, and where each thing that runs once stands."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from backend.pipeline.clock.waits import message_of
from backend.pipeline.kinds import FLOWS, ONWARD, Bools, Ints, Is, Kind
from backend.pipeline.order import Order
from backend.pipeline.placement import holder_of, pipeline_rank_of, rank_of
from backend.pipeline.program import Program
from backend.pipeline.rules.faults import Broken, Rule
from backend.pipeline.schedules.schedule import Schedule
from backend.pipeline.shape import Shape

NOWHERE = -1


@dataclass(frozen=True, slots=True)
class StagePlaces:
    """Of each row: `producer` and `consumer` are the ranks at both ends of a message, `placed`
    whether the row is on its rank, with numbers that exist."""

    program: Program
    microbatch_exists: Bools
    is_held: Bools
    crosses: Bools
    producer: Ints
    consumer: Ints

    @staticmethod
    def of(program: Program) -> "StagePlaces":
        rows, shape, rank = program.rows, program.shape, program.rank
        onward = np.where(rows.are(Is.MESSAGE), ONWARD[rows.kind], 0)
        stage_exists = _within(rows.stage, shape.num_stages)
        microbatch_exists = _within(rows.microbatch, shape.num_microbatches)
        stage = np.where(stage_exists, rows.stage, 0)
        microbatch = np.where(microbatch_exists, rows.microbatch, 0)
        return StagePlaces(
            program=program,
            microbatch_exists=microbatch_exists | ~rows.are(Is.OF_MICROBATCH),
            is_held=stage_exists & (holder_of(shape, stage) == pipeline_rank_of(shape, rank)),
            crosses=stage_exists & _within(stage + onward, shape.num_stages),
            producer=rank_of(shape, stage, microbatch),
            consumer=rank_of(shape, stage + onward, microbatch),
        )

    @property
    def placed(self) -> Bools:
        rows, rank = self.program.rows, self.program.rank
        send, recv, message = rows.are(Is.SEND), rows.are(Is.RECV), rows.are(Is.MESSAGE)
        here = np.where(message, self.crosses, self.is_held) & self.microbatch_exists
        here &= ~(rows.are(Is.OF_MICROBATCH) & ~recv) | (self.producer == rank)
        here &= ~recv | ((self.consumer == rank) & (rows.peer == self.producer))
        here &= ~send | (rows.peer == self.consumer)
        return np.asarray(here & (~rows.are(Is.VERSIONED) | (rows.version >= 0)))

    def broken(self) -> Iterator[Broken]:
        """The rows that are not placed, and why."""
        program, rows, rank = self.program, self.program.rows, self.program.rank
        send, recv = rows.are(Is.SEND), rows.are(Is.RECV)
        own = ~(send | recv)
        beyond, belongs = ~self.microbatch_exists, self.producer == rank
        gone = send & ~(self.crosses & self.microbatch_exists & belongs)
        into = recv & self.crosses
        source = rows.peer == self.producer
        shape = program.shape
        none = rows.are(Is.VERSIONED) & (rows.version < 0)
        astray = send & ~gone & (rows.peer != self.consumer)
        for rule, mask, what in (
            (Rule.RANK, own & ~self.is_held, "touches a stage that rank {rank} does not hold"),
            (
                Rule.RANK,
                beyond & ~send,
                f"runs a microbatch beyond the {shape.num_microbatches} of the segment",
            ),
            (
                Rule.RANK,
                own & self.is_held & rows.are(Is.OF_MICROBATCH) & ~beyond & ~belongs,
                "runs a microbatch that rank {rank} does not get",
            ),
            (Rule.RANK, recv & ~self.crosses, "crosses no cut between two stages"),
            (Rule.RANK, into & ~source, "should come from rank {producer}"),
            (Rule.RANK, into & source & (self.consumer != rank), "belongs to rank {consumer}"),
            (Rule.ORDER, gone, "sends what is not made yet"),
            (Rule.RANK, astray, "should go to rank {consumer}"),
            (Rule.VERSION, none, "has a version below 0"),
        ):
            yield Broken(rule, np.flatnonzero(mask), partial(self._said, what))

    def _said(self, what: str, row: int) -> str:
        return what.format(
            rank=self.program.rank[row], producer=self.producer[row], consumer=self.consumer[row]
        )


def _within(values: Ints, end: int) -> Bools:
    return np.asarray((values >= 0) & (values < end))


@dataclass(frozen=True, slots=True)
class Places:
    """Rows by what they do, of a program whose other rows are left out. `forward`, `again`
    (recomputations), `inputs` and `weights` (the halves of a backward) hold the first row of each
    stage * microbatches + microbatch, or `NOWHERE`.

    computes    the rows that compute; `order` is the same rows by themselves, `version` theirs,
                `made` the steps of its stage that the rank of each has made before
    """

    program: Program
    rule: Schedule
    placed: Bools
    computes: Ints
    order: Order
    version: Ints
    made: Ints
    forward: Ints
    again: Ints
    inputs: Ints
    weights: Ints

    @staticmethod
    def of(program: Program, rule: Schedule, placed: Bools) -> "Places":
        rows, shape = program.rows, program.shape
        computes = np.flatnonzero(rows.are(Is.COMPUTE) & placed)
        own = rows.at(computes)
        bounds = np.searchsorted(computes, program.bounds)
        order = Order(bounds, program.rank[computes], own.kind, own.stage, own.microbatch)
        key = own.stage * shape.num_microbatches + own.microbatch
        size = shape.num_stages * shape.num_microbatches

        def first(mask: Bools) -> Ints:
            found = np.full(size, NOWHERE)
            found[key[mask][::-1]] = computes[mask][::-1]
            return found

        whole = own.kind == Kind.BACKWARD
        return Places(
            program=program,
            rule=rule,
            placed=placed,
            computes=computes,
            order=order,
            version=own.version,
            made=order.steps_before(shape),
            forward=first(own.kind == Kind.FORWARD),
            again=first(own.kind == Kind.RECOMPUTE),
            inputs=first(whole | (own.kind == Kind.BACKWARD_INPUT)),
            weights=first(whole | (own.kind == Kind.BACKWARD_WEIGHT)),
        )

    @property
    def shape(self) -> Shape:
        return self.program.shape

    @property
    def key(self) -> Ints:
        """Per compute its place in `forward`, `again`, `inputs` and `weights`; of a step it means
        nothing."""
        return self.order.stage * self.shape.num_microbatches + self.order.microbatch

    @property
    def made_by(self) -> Ints:
        """Per message (by flow, stage and microbatch) the row that makes it."""
        return np.concatenate((self.forward, self.inputs))

    @property
    def used_by(self) -> Ints:
        """Per message the row that needs it: the next stage's forward, the one before's
        backward."""
        one = self.shape.num_microbatches
        none = np.full(one, NOWHERE)
        back = np.where(np.repeat(self.shape.is_one_way, one), NOWHERE, self.inputs)
        return np.concatenate((self.forward[one:], none, none, back[:-one]))

    def messages(self, table: Bools) -> tuple[Ints, Ints]:
        """The placed rows that send, or receive, and the message of each."""
        found = np.flatnonzero(self.program.rows.are(table) & self.placed)
        rows = self.program.rows.at(found)
        return found, message_of(rows, self.shape.num_stages, self.shape.num_microbatches)

    def message_name(self, message: int) -> str:
        """The words for a message."""
        rest, microbatch = divmod(message, self.shape.num_microbatches)
        flow, stage = divmod(rest, self.shape.num_stages)
        return f"{FLOWS[flow]} of stage {stage}, microbatch {microbatch}"
