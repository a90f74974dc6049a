"""A training run elsewhere, from one trace per rank, beside the prediction of a plan.

Ranges name what a rank computes: "forward 3" and "backward 3" of a microbatch (with the stage in
front where a rank has several, "forward 1 3"), as torch.distributed.pipelining also sets them
("Forward 3", "PP:1F3", "PP:1I3", "PP:1W3"). A range may hold a wait for a message: it counts from
the first to the last operation in it that is no communication.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from backend.cluster.cluster import Cluster
from backend.comparison.stragglers import SLOW
from backend.errors import InvalidInput
from backend.pipeline.actions import Backward, BackwardInput, BackwardWeight, Forward
from backend.pipeline.timeline import Span, Timeline
from backend.planning.plan import Plan
from backend.prediction.predict import predicted_program
from backend.profiles.profile import Profile
from backend.profiles.traces.trace_file import DEVICE, Trace

PLAIN = re.compile(r"(forward|backward) (?:(\d{1,6}) )?(\d{1,6})", re.IGNORECASE)
TORCH = re.compile(r"PP:(\d{1,6})([FBIW])(\d{1,6})")
KINDS: dict[str, "Kind"] = {"F": Forward, "B": Backward, "I": BackwardInput, "W": BackwardWeight}
Traced = Forward | Backward | BackwardInput | BackwardWeight
Kind = type[Traced]
Key = tuple[Kind, int, int]
COMMUNICATION = ("c10d::", "gloo:", "nccl:", "record_param_comms", "ncclDevKernel", "ncclKernel")
MOST_MICROBATCHES = 4096
NO_RANGES = (
    'Set ranges around what a rank computes: record_function(f"forward {microbatch}"), likewise '
    "backward; torch.distributed.pipelining sets them itself. The guide of traces has an example."
)


@dataclass(frozen=True, slots=True)
class TracedRank:
    """What a rank did in the step that is compared: seconds of compute, and the share of the
    step in which it computed nothing, measured and predicted."""

    rank: int
    computed: float
    predicted: float
    waiting: float
    predicted_waiting: float

    @property
    def is_slow(self) -> bool:
        return self.computed > 0 and self.computed >= SLOW * self.predicted


@dataclass(frozen=True, slots=True)
class TracedRun:
    """One step (the forwards and backwards between two updates) of a run elsewhere.

    steps         how many were traced; the one of median length is compared, the first left out
    makespan      seconds from its first forward to its last backward, `predicted_makespan` likewise
    bubble        the share of all rank time in which nothing is computed, likewise
    unmatched     actions that only one of the two has
    """

    ranks: tuple[TracedRank, ...]
    steps: int
    makespan: float
    predicted_makespan: float
    bubble: float
    predicted_bubble: float
    unmatched: int

    @property
    def slow(self) -> tuple[TracedRank, ...]:
        """The ranks that computed much longer than predicted, the slowest first."""
        found = (rank for rank in self.ranks if rank.is_slow)
        return tuple(sorted(found, key=lambda rank: rank.predicted / rank.computed))


def traced_run(
    traces: Sequence[Trace], profile: Profile, cluster: Cluster, plan: Plan
) -> tuple[TracedRun, Timeline, Timeline]:
    """The comparison, the measured timeline and the predicted one, both of computes alone. Raises
    `InvalidInput` where there is not one trace for each rank of the plan, or one names no
    microbatches."""
    needed = plan.partition.num_devices * plan.num_pipelines
    if len(traces) != needed:
        raise InvalidInput(
            f"{len(traces)} traces for a plan of {needed} ranks", "Give one trace for each rank."
        )
    steps = _steps([_computes(trace, plan, rank) for rank, trace in enumerate(_ranked(traces))])
    chosen = _median(steps)
    count = 1 + max(key[2] for rank in chosen for key in rank)
    if count > MOST_MICROBATCHES:
        raise InvalidInput(
            f"the traces name microbatch {count - 1:,}",
            f"A step may have {MOST_MICROBATCHES:,} microbatches, which count from 0.",
        )
    program, whole = predicted_program(profile, cluster, plan, count)
    computes = np.array([type(a) in KINDS.values() for a in whole.rows.actions()], np.bool_)
    predicted = whole.at(computes)
    places = {
        (span.rank, type(span.action), span.action.stage, span.action.microbatch): span.index
        for span in predicted.spans
        if isinstance(span.action, Traced)
    }
    spans, unmatched = _spans(chosen, places)
    measured = Timeline.of(spans)
    return (
        _compared(measured, predicted, len(steps), unmatched, program.num_ranks),
        measured,
        predicted,
    )


def _ranked(traces: Sequence[Trace]) -> list[Trace]:
    """By the ranks that they name, where each names another one; else as they are given."""
    named = [trace.rank for trace in traces if trace.rank is not None]
    if sorted(named) != list(range(len(traces))):
        return list(traces)
    return sorted(traces, key=lambda trace: trace.rank or 0)


def _computes(trace: Trace, plan: Plan, rank: int) -> list[tuple[Key, float, float]]:
    """What a rank computes, in the order of time, with starts and ends. Replicas of a stage count
    their microbatches each for itself: here they share them round robin."""
    size = plan.partition.pipeline_size
    places = [(p, r) for p in range(size) for r in range(plan.partition.replicas[p])]
    own, replica = places[rank % len(places)]
    replicas = plan.partition.replicas[own]
    if plan.partition.shares:
        raise InvalidInput(
            f"replicas take unequal shares ({plan.partition.label}), which other trainers do not",
            "Compare with a plan of equal shares.",
        )
    work = _Work(trace)
    found = []
    for kind, stage, microbatch, start, end in _named(trace):
        key = (kind, own if stage is None else stage, microbatch * replicas + replica)
        found.append((key, *work.within(start, end)))
    if not found:
        raise InvalidInput(f"{trace.name} names no microbatches", NO_RANGES)
    return found


def _named(trace: Trace) -> Iterator[tuple[Kind, int | None, int, float, float]]:
    for event in trace.of("user_annotation"):
        if plain := PLAIN.fullmatch(event.name):
            kind: Kind = Forward if plain[1].lower() == "forward" else Backward
            stage = int(plain[2]) if plain[2] else None
            yield kind, stage, int(plain[3]), event.start, event.end
        elif torch := TORCH.fullmatch(event.name):
            yield KINDS[torch[2]], int(torch[1]), int(torch[3]), event.start, event.end


class _Work:
    """When a process computes: kernels where it has a GPU, else operations; no communication."""

    def __init__(self, trace: Trace) -> None:
        launched = {e.correlation: e for e in trace.of(*DEVICE) if e.correlation is not None}
        own = [e for e in trace.of("cpu_op") if not e.name.startswith(COMMUNICATION)]
        runs = [e for e in trace.of("cuda_runtime", "cuda_driver") if e.correlation in launched]
        if launched:
            kernels = [(e.start, launched[e.correlation or 0]) for e in runs]
            pairs = [(s, k) for s, k in kernels if not k.name.startswith(COMMUNICATION)]
            self._rows = [(start, kernel.start, kernel.end) for start, kernel in pairs]
        else:
            self._rows = [(e.start, e.start, e.end) for e in own]
        self._starts = [row[0] for row in self._rows]

    def within(self, start: float, end: float) -> tuple[float, float]:
        """From the first to the last of what was begun in a range; the range where that is none."""
        rows = self._rows[bisect_left(self._starts, start) : bisect_left(self._starts, end)]
        if not rows:
            return start, end
        return min(row[1] for row in rows), max(row[2] for row in rows)


Step = list[dict[Key, tuple[float, float]]]


def _steps(ranks: Sequence[list[tuple[Key, float, float]]]) -> list[Step]:
    """What each rank did in the steps that every rank has: an action comes once in a step."""
    numbered = []
    for computes in ranks:
        seen: Counter[Key] = Counter()
        own: dict[int, dict[Key, tuple[float, float]]] = {}
        for key, start, end in computes:
            own.setdefault(seen[key], {})[key] = (start, end)
            seen[key] += 1
        numbered.append(own)
    common = min(map(len, numbered))
    return [[own[number] for own in numbered] for number in range(common)]


def _length(step: Step) -> float:
    times = [time for rank in step for both in rank.values() for time in both]
    return max(times) - min(times)


def _median(steps: list[Step]) -> Step:
    """That of median length (of two the shorter), the first left out where there are several."""
    kept = sorted(steps[1:] or steps, key=_length)
    return kept[(len(kept) - 1) // 2]


def _spans(step: Step, places: dict[tuple[int, Kind, int, int], int]) -> tuple[list[Span], int]:
    """With the places that the actions have in the program, and how many have none there or are
    missing here; seconds since the step began."""
    origin = min(start for rank in step for start, _ in rank.values())
    spans = []
    for rank, own in enumerate(step):
        for (kind, stage, microbatch), (start, end) in own.items():
            index = places.get((rank, kind, stage, microbatch))
            if index is not None:
                action = kind(stage, microbatch)
                spans.append(Span(rank, index, action, start - origin, end - origin))
    spans.sort(key=lambda span: (span.rank, span.index))
    there = sum(map(len, step))
    return spans, (there - len(spans)) + (len(places) - len(spans))


def _compared(
    measured: Timeline, predicted: Timeline, steps: int, unmatched: int, num_ranks: int
) -> TracedRun:
    if not len(measured):
        raise InvalidInput(
            "the traces have no action of the plan",
            "Are they of this plan? Stages and microbatches count from 0.",
        )
    busy, wanted = (
        np.bincount(one.rank, one.seconds, minlength=num_ranks) for one in (measured, predicted)
    )
    whole, expected = measured.makespan, predicted.makespan
    ranks = tuple(
        TracedRank(
            rank=rank,
            computed=float(busy[rank]),
            predicted=float(wanted[rank]),
            waiting=_rest(float(busy[rank]), whole),
            predicted_waiting=_rest(float(wanted[rank]), expected),
        )
        for rank in range(num_ranks)
    )
    return TracedRun(
        ranks=ranks,
        steps=steps,
        makespan=whole,
        predicted_makespan=expected,
        bubble=_rest(float(busy.mean()), whole),
        predicted_bubble=_rest(float(wanted.mean()), expected),
        unmatched=unmatched,
    )


def _rest(busy: float, whole: float) -> float:
    return max(0.0, 1 - busy / whole) if whole else 0.0
