"""What each rank holds in memory while a program runs. It is told every size and knows none."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from itertools import accumulate
from typing import Protocol

from backend.pipeline.actions import (
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
from backend.pipeline.held import live_versions
from backend.pipeline.program import Program
from backend.pipeline.routing import makes
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.timeline import Span, Timeline


class Sizes(Protocol):
    """Bytes of what a rank holds, per stage."""

    def weights(self, stage: int) -> float:
        """One version of the weights; a gradient buffer is as large."""

    def optimizer(self, stage: int) -> float:
        """The optimizer's state."""

    def activations(self, stage: int) -> float:
        """What a forward of one microbatch keeps for its backward, bundles not counted."""

    def boundary(self, stage: int) -> float:
        """The bundle that goes into `stage` for one microbatch; its gradient is as large."""


@dataclass(frozen=True, slots=True)
class Holding:
    """Bytes by kind. `weights` are the newest (and, in lane 0, the reference that the lanes
    of a device share), `versions` the older ones, `buffers` the bundles at both ends."""

    weights: float = 0.0
    versions: float = 0.0
    gradients: float = 0.0
    optimizer: float = 0.0
    activations: float = 0.0
    buffers: float = 0.0

    @property
    def total(self) -> float:
        return float(sum(getattr(self, one.name) for one in fields(self)))

    def __add__(self, other: "Holding") -> "Holding":
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        return Holding(*(mine + more for mine, more in pairs))


@dataclass(frozen=True, slots=True)
class Moment:
    """From `time` (seconds) on a rank holds this."""

    time: float
    holding: Holding


def memory(program: Program, timeline: Timeline, sizes: Sizes) -> tuple[tuple[Moment, ...], ...]:
    """Per rank what it holds over time; the first moment is before the first action.

    A forward's activations are there from its start to the end of its (weights') backward;
    with recomputation only while it runs, and again from the recomputation on. A bundle that
    comes in is there from the start of its transfer to the end of the backward that used it,
    one that goes out until it has been sent; gradients from the first backward to the step;
    an old version until its last read. Workspaces of kernels are not counted (ours; the terms
    are those of PipeDream-2BW, section 3.3).
    """
    ranks: list[list[Span]] = [[] for _ in program.ranks]
    for span in timeline.spans:
        ranks[span.rank].append(span)
    sends = {s.action.message: s for s in timeline.spans if isinstance(s.action, Send)}
    return tuple(
        _Ledger(program, rank, sizes, sends).over(spans) for rank, spans in enumerate(ranks)
    )


def peak(moments: Sequence[Moment]) -> Moment:
    """The first moment at which a rank holds the most."""
    return max(moments, key=lambda moment: moment.holding.total)


@dataclass(slots=True)
class _Ledger:
    """The changes on one rank: (time, bytes that come or go)."""

    program: Program
    rank: int
    sizes: Sizes
    sends: dict[Message, Span]
    changes: list[tuple[float, Holding]] = field(default_factory=list)
    summing: set[int] = field(default_factory=set)

    def over(self, spans: Sequence[Span]) -> tuple[Moment, ...]:
        for span in spans:
            self._note(span)
        for stage in self.program.shape.seats[self.rank].stages:
            self._versions(stage, spans)
        ordered = sorted(self.changes, key=lambda change: (change[0], change[1].total))
        times = [0.0, *(time for time, _ in ordered)]
        held = accumulate((change for _, change in ordered), initial=self._always())
        return tuple(Moment(time, holding) for time, holding in zip(times, held, strict=True))

    def _always(self) -> Holding:
        seat = self.program.shape.seats[self.rank]
        copies = 2 if self.program.shape.lanes > 1 and seat.lane == 0 else 1
        weights = sum(self.sizes.weights(stage) for stage in seat.stages)
        state = sum(self.sizes.optimizer(stage) for stage in seat.stages)
        return Holding(weights=copies * weights, optimizer=state)

    def _note(self, span: Span) -> None:
        match span.action:
            case Forward(stage):
                self._forward(span, stage)
                self._make(span, makes(span.action, self.program.shape))
            case Recompute(stage):
                self._add(span.start, Holding(activations=self.sizes.activations(stage)))
            case Backward(stage):
                self._make(span, makes(span.action, self.program.shape))
                self._learn(span, stage)
            case BackwardInput():
                self._make(span, makes(span.action, self.program.shape))
            case BackwardWeight(stage):
                self._learn(span, stage)
            case Step(stage):
                if stage in self.summing:
                    self.summing.remove(stage)
                    self._add(span.end, Holding(gradients=-self.sizes.weights(stage)))
            case Recv(message):
                self._add(self.sends[message].start, self._bundle(message))
            case Send() | AllReduce() | Average():
                pass

    def _forward(self, span: Span, stage: int) -> None:
        kept = self.sizes.activations(stage)
        self._add(span.start, Holding(activations=kept))
        trains = schedule(self.program.schedule).trains
        if self.program.shape.recompute or not trains:
            self._add(span.end, Holding(activations=-kept))
        if stage == 0:
            self._add(span.start, Holding(buffers=self.sizes.boundary(0)))
        if not trains:
            self._add(span.end, Holding(buffers=-self.sizes.boundary(stage)))

    def _make(self, span: Span, message: Message | None) -> None:
        """A bundle is there from the start of what makes it; it goes when it has been sent,
        or with the backward of a stage on the same rank."""
        if message is None:
            return
        bundle = self._bundle(message)
        self._add(span.start, bundle)
        if message in self.sends:
            self._add(self.sends[message].end, Holding(buffers=-bundle.buffers))

    def _learn(self, span: Span, stage: int) -> None:
        """The end of a backward: its gradients stay, what was kept for it and both bundles
        that came in go."""
        if stage not in self.summing:
            self.summing.add(stage)
            self._add(span.start, Holding(gradients=self.sizes.weights(stage)))
        bundles = self.sizes.boundary(stage)
        if stage < self.program.shape.num_stages - 1:
            bundles += self.sizes.boundary(stage + 1)
        gone = Holding(activations=-self.sizes.activations(stage), buffers=-bundles)
        self._add(span.end, gone)

    def _versions(self, stage: int, spans: Sequence[Span]) -> None:
        before = 1
        for span, live in zip(spans, live_versions([s.action for s in spans], stage), strict=True):
            if live != before:
                more = (live - before) * self.sizes.weights(stage)
                self._add(span.end, Holding(versions=more))
            before = live

    def _bundle(self, message: Message) -> Holding:
        """What goes into the next stage, or the gradient of what came into this one."""
        onward = 1 if message.flow is Flow.ACTIVATION else 0
        return Holding(buffers=self.sizes.boundary(message.stage + onward))

    def _add(self, time: float, change: Holding) -> None:
        self.changes.append((time, change))
