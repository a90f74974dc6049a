"""What each rank holds in memory while a program runs. It is told every size and knows none."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from operator import add, attrgetter
from typing import Protocol

import numpy as np

from backend.pipeline.clock.waits import coded, message_of
from backend.pipeline.held import live_versions
from backend.pipeline.kinds import FLOW, Bools, Floats, Ints, Is, Kind
from backend.pipeline.order import count_before
from backend.pipeline.program import Program
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.schedules.schedule import Schedule
from backend.pipeline.shape import RankCoordinates
from backend.pipeline.timeline import Timeline


class Sizes(Protocol):
    """Bytes of what a rank holds, per stage."""

    def weights(self, stage: int) -> float:
        """One version of the weights; a gradient buffer is as large."""

    def optimizer(self, stage: int) -> float:
        """The optimizer's state, masters of the weights included."""

    def reference(self, stage: int) -> float:
        """What pipelines keep beside their weights to exchange by."""

    def activations(self, stage: int) -> float:
        """What a forward of one microbatch keeps for its backward, bundles not counted."""

    def deferred(self, stage: int) -> float:
        """Gradients of one microbatch between both halves of its backward."""

    def at_work(self, stage: int) -> float:
        """What its layers have alive while they work, at most, beside all else."""

    def constants(self, stage: int) -> float:
        """Frozen weights and buffers."""

    def process(self) -> float:
        """What a rank's process holds beside its model."""

    def boundary(self, stage: int) -> float:
        """The bundle that goes into `stage` for one microbatch."""

    def boundary_gradient(self, stage: int) -> float:
        """The gradients of those of its tensors that have one."""


@dataclass(frozen=True, slots=True)
class Holding:
    """Bytes by kind. `weights` are the newest (and what pipelines exchange by, in pipeline 0 where
    they share a device), `versions` the older ones, `buffers` the bundles at both ends, `work` what
    is alive while a layer computes, `constants` frozen weights and the model's buffers, `process`
    what a rank's process holds beside its model."""

    weights: float = 0.0
    versions: float = 0.0
    gradients: float = 0.0
    optimizer: float = 0.0
    activations: float = 0.0
    buffers: float = 0.0
    work: float = 0.0
    constants: float = 0.0
    process: float = 0.0

    @property
    def total(self) -> float:
        return float(sum(_bytes(self)))

    @property
    def named(self) -> dict[str, float]:
        """What there is of it, in people's words."""
        return {word: held for word, held in zip(WORDS, _bytes(self), strict=True) if held}

    def __add__(self, other: "Holding") -> "Holding":
        return Holding(*map(add, _bytes(self), _bytes(other)))

    def times(self, count: int) -> "Holding":
        """That of so many."""
        return Holding(*(count * held for held in _bytes(self)))


WORDS = (
    "weights",
    "older versions",
    "gradients",
    "optimizer",
    "activations",
    "messages",
    "layer at work",
    "frozen weights and buffers",
    "process",
)
"""Of a `Holding`'s fields, in their order."""
_bytes: Callable[[Holding], tuple[float, ...]] = attrgetter(*(one.name for one in fields(Holding)))


@dataclass(frozen=True, slots=True)
class Moment:
    """From `time` (seconds) on a rank holds this."""

    time: float
    holding: Holding


def memory(program: Program, timeline: Timeline, sizes: Sizes) -> tuple[tuple[Moment, ...], ...]:
    """Per rank what it holds over time; the first moment is before the first action.

    A forward's activations are there from its start to the end of its (weights') backward;
    with recomputation only while it runs, and again from the recomputation on; what waits for the
    weights' half from the inputs' half on. A bundle that
    comes in is there from the start of its transfer to the end of the backward that used it,
    one that goes out until it has been sent; gradients from the first backward to the step;
    an old version until its last read; what the layer at work needs, during all compute (ours;
    the other terms are those of PipeDream-2BW, section 3.3).
    """
    book = _Book(program, timeline, sizes)
    book.activations()
    book.bundles()
    book.gradients()
    book.versions()
    book.work()
    return tuple(book.moments(coordinates) for coordinates in program.shape.coordinates)


def peak(moments: Sequence[Moment]) -> Moment:
    """The first moment at which a rank holds the most."""
    return max(moments, key=lambda moment: moment.holding.total)


WEIGHTS, VERSIONS, GRADIENTS, OPTIMIZER, ACTIVATIONS, BUFFERS, WORK = range(7)
"""The places of a `Holding`'s fields."""


@dataclass(slots=True)
class _Book:
    """The changes on all ranks: (rank, time, field of the holding, bytes that come or go)."""

    program: Program
    timeline: Timeline
    sizes: Sizes
    entries: list[tuple[Ints, Floats, Ints, Floats]] = field(default_factory=list)

    def add(self, rows: Ints, times: Floats, what: int, amount: Floats) -> None:
        """A change of `amount` at `times`, one for each of `rows`."""
        self.entries.append((self.program.rank[rows], times, np.full(len(rows), what), amount))

    def start(self, mask: Bools, what: int, amount: Floats) -> None:
        rows = np.flatnonzero(mask)
        self.add(rows, self.timeline.start[rows], what, amount[rows])

    def end(self, mask: Bools, what: int, amount: Floats) -> None:
        rows = np.flatnonzero(mask)
        self.add(rows, self.timeline.end[rows], what, -amount[rows])

    def activations(self) -> None:
        """What forwards and recomputations keep."""
        rows = self.program.rows
        kept = np.where(self._idle, 0.0, self._per_stage(self.sizes.activations))
        forward = rows.kind == Kind.FORWARD
        self.start(forward | (rows.kind == Kind.RECOMPUTE), ACTIVATIONS, kept)
        if self.program.shape.recompute or not self._rule.trains:
            self.end(forward, ACTIVATIONS, kept)
        self.end(rows.are(Is.LEARNING), ACTIVATIONS, kept)
        deferred = self._per_stage(self.sizes.deferred)
        self.start(rows.kind == Kind.BACKWARD_INPUT, ACTIVATIONS, deferred)
        self.end(rows.kind == Kind.BACKWARD_WEIGHT, ACTIVATIONS, deferred)

    def bundles(self) -> None:
        """A bundle is there from the start of what makes it, or of its transfer; it goes when it
        has been sent, or with the backward of a stage on the same rank."""
        rows, shape, last = self.program.rows, self.program.shape, self.program.shape.num_stages - 1
        into, back = map(self._per_stage, (self.sizes.boundary, self._boundary_gradient))
        after, coming = (
            np.array([*sizes[1:], 0.0])[rows.stage]
            for sizes in map(self._sizes, (self.sizes.boundary, self._boundary_gradient))
        )
        there = FLOW[rows.kind] == 0
        bundle, inner = np.where(there, after, back), rows.stage < last
        crosses = rows.are(Is.COMPUTE) & np.where(
            there, inner, (FLOW[rows.kind] == 1) & (rows.stage > 0)
        )
        forward = there & rows.are(Is.COMPUTE)
        self.start(forward & (rows.stage == 0), BUFFERS, into)
        self.start(crosses, BUFFERS, bundle)
        self.end(rows.are(Is.SEND), BUFFERS, bundle)
        done = self._idle | (not self._rule.trains)
        self.end(forward & done, BUFFERS, into)
        self.end(rows.are(Is.LEARNING), BUFFERS, np.where(done, 0.0, into) + coming)
        size = 2 * shape.num_stages * shape.num_microbatches
        begun, message = np.zeros(size), message_of(rows, shape.num_stages, shape.num_microbatches)
        send, recv = np.flatnonzero(rows.are(Is.SEND)), np.flatnonzero(rows.are(Is.RECV))
        begun[message[send]] = self.timeline.start[send]
        self.add(recv, begun[message[recv]], BUFFERS, bundle[recv])

    def gradients(self) -> None:
        """From the first backward of an update to its step."""
        rows, program = self.program.rows, self.program
        weights = self._per_stage(self.sizes.weights)
        step, learning = rows.kind == Kind.STEP, rows.are(Is.LEARNING)
        made = count_before(step, rows.stage // program.shape.pipeline_size, program.bounds)
        update = coded(program.rank, rows.stage, made)
        first = np.flatnonzero(learning)[np.unique(update[learning], return_index=True)[1]]
        self.add(first, self.timeline.start[first], GRADIENTS, weights[first])
        self.end(step & np.isin(update, update[first]), GRADIENTS, weights)

    def versions(self) -> None:
        """The older versions, from the step that supersedes each to its last read."""
        shape, rank = self.program.shape, self.program.rank
        for chunk in range(shape.chunks):
            stages = np.array([coordinates.stages[chunk] for coordinates in shape.coordinates])
            weights = np.array([self.sizes.weights(stage) for stage in range(shape.num_stages)])
            live = live_versions(self.program, chunk)
            change = np.diff(live, prepend=1)
            firsts = self.program.bounds[:-1][np.diff(self.program.bounds) > 0]
            change[firsts] = live[firsts] - 1
            at = np.flatnonzero(change)
            amount = change[at] * weights[stages[rank[at]]]
            self.add(at, self.timeline.end[at], VERSIONS, amount)

    def work(self) -> None:
        """What compute needs beside what it is given and leaves."""
        computes, most = self.program.rows.are(Is.COMPUTE), self._per_stage(self.sizes.at_work)
        self.start(computes, WORK, most)
        self.end(computes, WORK, most)

    def moments(self, coordinates: RankCoordinates) -> tuple[Moment, ...]:
        """What one rank holds over time."""
        rank, times, what, amount = (
            np.concatenate(column) for column in zip(*self.entries, strict=True)
        )
        own = rank == coordinates.rank
        times, what, amount = times[own], what[own], amount[own]
        order = np.lexsort((amount, times))
        held = np.zeros((len(order) + 1, len(WORDS)))
        held[np.arange(len(order)) + 1, what[order]] = amount[order]
        held[0] = self._always(coordinates)
        moments = zip([0.0, *times[order].tolist()], np.cumsum(held, axis=0).tolist(), strict=True)
        return tuple(Moment(time, Holding(*bytes_held)) for time, bytes_held in moments)

    def _always(self, coordinates: RankCoordinates) -> list[float]:
        weights = sum(self.sizes.weights(stage) for stage in coordinates.stages)
        shape = self.program.shape
        if shape.num_pipelines > 1 and (shape.apart or coordinates.pipeline == 0):
            weights += sum(self.sizes.reference(stage) for stage in coordinates.stages)
        state = sum(self.sizes.optimizer(stage) for stage in coordinates.stages)
        constants = sum(self.sizes.constants(stage) for stage in coordinates.stages)
        return [weights, 0.0, 0.0, state, 0.0, 0.0, 0.0, constants, self.sizes.process()]

    @property
    def _rule(self) -> Schedule:
        return schedule(self.program.schedule)

    @property
    def _idle(self) -> Bools:
        """Which rows' stages keep nothing for a backward."""
        idle = self._rule.idle_backward(self.program.shape)
        return np.asarray(idle[self.program.rows.stage])

    def _boundary_gradient(self, stage: int) -> float:
        """What goes back from `stage` for one microbatch."""
        goes_back = stage > 0 and not self.program.shape.is_one_way[stage - 1]
        return self.sizes.boundary_gradient(stage) if goes_back else 0.0

    def _sizes(self, size: Callable[[int], float]) -> list[float]:
        return [size(stage) for stage in range(self.program.shape.num_stages)]

    def _per_stage(self, size: Callable[[int], float]) -> Floats:
        """The bytes of every row's stage."""
        return np.asarray(np.array(self._sizes(size))[self.program.rows.stage], np.float64)
