"""Which layer each piece of a trace belongs to: ranges, operations, their backwards, kernels.

    forward    operations inside a layer's range
    backward   what autograd evaluates, by the sequence number that it has in common with a forward
               operation; adding up a weight's gradient, which has no number, belongs to what was
               evaluated before
    kernels    what the processor has launched meanwhile, by correlation number

A forward operation that makes no node of the graph has the number of the next one that does: the
last of those with a number counts.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from backend.profiles.traces.trace_file import DEVICE, LAUNCHES, Trace, TraceEvent

LAYER = re.compile(r"layer (\S+)(?: (\d{1,18}))?")
MODULE = re.compile(r"nn\.Module: (\S+)")
EVALUATES = "autograd::engine::evaluate_function: "


@dataclass(slots=True, eq=False)
class Occurrence:
    """One forward of a layer: its range, what its backward took, the operations in it."""

    layer: str
    range: TraceEvent
    parameter_bytes: int | None = None
    forward: float = 0.0
    backward: float = 0.0
    operations: list[TraceEvent] = field(default_factory=list)


class DeviceSeconds:
    """Seconds of the device in which a stretch of a thread's work ran: on a GPU those of the
    kernels that it launched, else its own."""

    def __init__(self, trace: Trace) -> None:
        took: dict[int, float] = defaultdict(float)
        for event in trace.of(*DEVICE):
            if event.correlation is not None:
                took[event.correlation] += event.seconds
        self._on_device = bool(took)
        self._launches: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for event in trace.of(*LAUNCHES):
            if event.correlation in took:
                launched = took[event.correlation or 0]
                self._launches[event.thread].append((event.start, launched))

    def seconds(self, event: TraceEvent) -> float:
        """Of what happened on the event's thread while it lasted."""
        if not self._on_device:
            return event.seconds
        launches = self._launches[event.thread]
        first = bisect_right(launches, (event.start, -1.0))
        stop = bisect_right(launches, (event.end, float("inf")))
        return sum(took for _, took in launches[first:stop])


def occurrences(trace: Trace) -> list[Occurrence]:
    """Every forward of every layer in the order of time, with its seconds; none where the trace
    names no layers."""
    found = _ranges(trace)
    if not found:
        return []
    clock = DeviceSeconds(trace)
    owners: dict[int, Occurrence] = {}
    places = [each.range.start for each in found]
    beside: list[tuple[TraceEvent, Occurrence]] = []
    covered = 0.0
    for event in trace.of("cpu_op"):
        before = bisect_right(places, event.start) - 1
        if before < 0 or event.name.startswith(EVALUATES):
            continue
        owner, is_forward = found[before], not event.facts.get("Fwd thread id")
        if is_forward and event.sequence is not None:
            owners[event.sequence] = owner
        if event.end <= owner.range.end and event.thread == owner.range.thread:
            owner.operations.append(event)
        elif is_forward and event.sequence is not None and event.start >= covered:
            beside.append((event, owner))
            covered = event.end
    for each in found:
        each.forward = clock.seconds(each.range)
    used = _backwards(trace, owners, clock)
    for event, owner in beside:  # such as the loss, which is no layer
        if event.sequence in used:
            owner.forward += clock.seconds(event)
    return found


def _backwards(trace: Trace, owners: dict[int, Occurrence], clock: DeviceSeconds) -> set[int]:
    """Add the seconds of what autograd evaluated to whom they belong; the numbers that it had."""
    used: set[int] = set()
    last: dict[str, Occurrence] = {}
    for event in trace.of("cpu_op"):
        if not event.name.startswith(EVALUATES):
            continue
        owner = owners.get(event.sequence) if event.sequence is not None else None
        if event.sequence is not None and owner is not None:
            used.add(event.sequence)
            last[event.thread] = owner
        owner = owner or last.get(event.thread)
        if owner is not None:
            owner.backward += clock.seconds(event)
    return used


def _ranges(trace: Trace) -> list[Occurrence]:
    """The outermost ranges of layers; where nobody has set any, the innermost modules."""
    layers = [
        Occurrence(found[1], event, int(found[2]) if found[2] else None)
        for event in trace.of("user_annotation")
        if (found := LAYER.fullmatch(event.name))
    ]
    if layers:
        return _outermost(layers)
    modules = [
        Occurrence(found[1], event)
        for event in trace.of("python_function")
        if (found := MODULE.fullmatch(event.name))
    ]
    return _innermost(modules)


def _outermost(ranges: Iterable[Occurrence]) -> list[Occurrence]:
    kept: list[Occurrence] = []
    for each in ranges:
        if not kept or each.range.start >= kept[-1].range.end:
            kept.append(each)
    return kept


def _innermost(ranges: Sequence[Occurrence]) -> list[Occurrence]:
    followed = {id(each) for each, later in pairwise(ranges) if later.range.start < each.range.end}
    return [each for each in ranges if id(each) not in followed]
