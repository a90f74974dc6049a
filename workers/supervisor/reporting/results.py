"""What the ranks have told so far that the summary of a run needs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import fsum, isfinite

from backend.pipeline.timeline import Timeline
from backend.runs.events import Clock, CoreUse, Event, Finished, Metrics
from backend.runs.request.spec import RunSpec, TrainSpec

MOST = 100
"""Metrics of a summary: whatever a rank tells."""


@dataclass
class EpochLoss:
    """The mean loss of the newest epoch: a sum, since an epoch may have millions of losses."""

    epoch: int = -1
    total: float = 0.0
    count: int = 0

    def note(self, epoch: int, losses: Sequence[float]) -> None:
        """What comes late of an earlier epoch counts for nothing."""
        if epoch > self.epoch:
            self.epoch, self.total, self.count = epoch, 0.0, 0
        if epoch == self.epoch:
            self.total += fsum(losses)
            self.count += len(losses)

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None


@dataclass
class Results:
    """`newest` holds the last value of each metric but loss and throughput, `spans` those of the
    newest `segment`, by rank; `reached` is when an evaluation first met the run's target, in
    Unix seconds; `checkpoints` counts those that are committed."""

    loss: EpochLoss = field(default_factory=EpochLoss)
    newest: dict[str, float] = field(default_factory=dict)
    reached: float | None = None
    profile_id: int | None = None
    segment: int | None = None
    spans: dict[int, Timeline] = field(default_factory=dict)
    epochs: int = 0
    checkpoints: int = 0
    clocks: dict[int, Clock] = field(default_factory=dict)
    cores: dict[int, CoreUse] = field(default_factory=dict)

    def note(self, event: Event | None, spec: RunSpec) -> None:
        """A rank of a run that was asked for by `spec` has told an event."""
        match event:
            case Metrics():
                self._note_metrics(event)
                self._note_target(event, spec)
            case Clock(rank):
                self.clocks[rank] = event
            case CoreUse(rank):
                self.cores[rank] = event
            case Finished(_, epochs):
                self.epochs = max(self.epochs, epochs)
            case _:
                pass

    def note_spans(self, rank: int, segment: int, spans: Timeline) -> None:
        """What a rank measured in a segment is stored. Another rank may be further: what comes late
        of an earlier segment counts for nothing."""
        if self.segment is None or segment > self.segment:
            self.segment, self.spans = segment, {}
        if segment == self.segment:
            self.spans[rank] = spans

    def _note_metrics(self, event: Metrics) -> None:
        if event.name == "loss":
            self.loss.note(event.epoch, event.values)
        elif event.values and event.name != "throughput":
            self._note_newest(event.name, event.values[-1])

    def _note_newest(self, name: str, value: float) -> None:
        if isfinite(value) and (name in self.newest or len(self.newest) < MOST):
            self.newest[name] = value

    def _note_target(self, event: Metrics, spec: RunSpec) -> None:
        if not isinstance(spec, TrainSpec) or self.reached is not None:
            return
        for value, when in zip(event.values, event.times, strict=True):
            if spec.is_met({event.name: value}):
                self.reached = when
                return
