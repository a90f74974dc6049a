"""How much of a timeline is waiting, per rank and over all of them, and why."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from backend.pipeline.actions import (
    Action,
    Backward,
    BackwardInput,
    Collective,
    Forward,
    Message,
    Recv,
    Send,
    Step,
)
from backend.pipeline.kinds import Is
from backend.pipeline.program import Program
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.timeline import Span, Timeline


def waiting(timeline: Timeline) -> tuple[float, ...]:
    """Per rank the share (0 to 1) of the makespan in which it does not compute.

    Messages, all-reduces, warm-up and drain all count as waiting, so that a measured and a
    predicted timeline mean the same: a rank cannot tell its wait from its transfer.
    """
    compute = np.where(timeline.rows.are(Is.COMPUTE), timeline.seconds, 0.0)
    busy = np.bincount(timeline.rank, compute, minlength=timeline.num_ranks)
    makespan = timeline.makespan
    return tuple((1.0 - busy / makespan).tolist() if makespan else np.zeros(len(busy)).tolist())


def bubble(timeline: Timeline) -> float:
    """The share (0 to 1) of all rank time that is waiting; 0 for an empty timeline."""
    shares = waiting(timeline)
    return sum(shares) / len(shares) if shares else 0.0


class Idle(StrEnum):
    """Why a rank does not compute."""

    WARM_UP = "warm-up"
    DRAIN = "drain"
    IMBALANCE = "imbalance"
    COMMUNICATION = "waiting for communication"
    SYNCHRONISATION = "synchronisation"
    SHARING = "device busy with another pipeline"


Causes = dict[Idle, float]
"""Seconds by cause."""


def idle_causes(program: Program, timeline: Timeline) -> tuple[Causes, ...]:
    """Per rank the idle seconds of `program`'s predicted `timeline` by cause; they add up to
    its makespan less its computes (`bubbles.waiting`).

    While the message that a rank waits for travels, it waits for communication; in a
    collective, before and during it, for synchronisation. Otherwise it waits for another
    rank's compute: until the first backward of a batch that is warm-up, after its last
    forward drain, between the two imbalance. A schedule that never drains has one batch here.
    The definitions are ours; with equal stages and free messages only warm-up and drain are
    left, the bubbles of the papers.
    """
    ranks: list[list[Span]] = [[] for _ in range(program.num_ranks)]
    for span in timeline.spans:
        ranks[span.rank].append(span)
    posted = dict(_posts(ranks))
    begin = min((span.start for span in timeline.spans), default=0.0)
    end = begin + timeline.makespan
    flushes = schedule(program.schedule).flushes
    return tuple(_Walk(begin, posted).over(own, end, flushes) for own in ranks)


def total(causes: Sequence[Causes]) -> Causes:
    """The seconds of all ranks together."""
    return {idle: sum(one[idle] for one in causes) for idle in Idle}


def _posts(ranks: Sequence[Sequence[Span]]) -> Iterator[tuple[tuple[int, int, Message], float]]:
    """When each message was ready to leave, which may be before its link was free."""
    for spans in ranks:
        now = spans[0].start if spans else 0.0
        for span in spans:
            if isinstance(span.action, Send):
                yield (span.rank, span.action.to, span.action.message), now
            else:
                now = span.end


@dataclass(slots=True)
class _Walk:
    """One rank, first to last: `now` is when it ended what it did before."""

    now: float
    posted: dict[tuple[int, int, Message], float]
    causes: defaultdict[Idle, float] = field(default_factory=lambda: defaultdict(float))

    def over(self, spans: Sequence[Span], end: float, flushes: bool) -> Causes:
        order = phases([span.action for span in spans], flushes)
        for span, phase in zip(spans, order, strict=True):
            self._add(span, phase)
        self.causes[Idle.DRAIN] += end - self.now
        return {idle: self.causes[idle] for idle in Idle}

    def _add(self, span: Span, phase: Idle) -> None:
        action = span.action
        if isinstance(action, Send):
            return
        if isinstance(action, Recv):
            posted = self.posted.get((action.source, span.rank, action.message), self.now)
            travels = min(max(posted, self.now), span.end)
            self.causes[phase] += travels - self.now
            self.causes[Idle.COMMUNICATION] += span.end - travels
        elif isinstance(action, Collective):
            self.causes[Idle.SYNCHRONISATION] += span.end - self.now
        else:
            self.causes[Idle.SHARING] += span.start - self.now
        self.now = span.end


def phases(actions: Sequence[Action], flushes: bool) -> list[Idle]:
    """The phase of its batch in which each action stands: warm-up up to the first backward
    (or forward where there is none), drain after the last forward, imbalance between."""
    found: list[Idle] = []
    for batch in _batches(actions, flushes):
        kinds = [type(action) for action in batch]
        backs = [i for i, kind in enumerate(kinds) if kind in (Backward, BackwardInput)]
        forwards = [i for i, kind in enumerate(kinds) if kind is Forward]
        first = min(backs or forwards, default=len(batch))
        last = max(forwards, default=-1)
        found += [
            Idle.WARM_UP if i <= first else Idle.DRAIN if i > last else Idle.IMBALANCE
            for i in range(len(batch))
        ]
    return found


def _batches(actions: Sequence[Action], flushes: bool) -> Iterator[Sequence[Action]]:
    """What lies between two flushes; everything where there is none."""
    start, stepped = 0, False
    for index, action in enumerate(actions):
        if flushes and stepped and isinstance(action, Forward):
            yield actions[start:index]
            start, stepped = index, False
        stepped = stepped or isinstance(action, Step)
    yield actions[start:]
