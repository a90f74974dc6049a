"""Timelines as Chrome trace events, which Perfetto and chrome://tracing open, both ways.

Each device is a process, each rank on it a thread, and the sends of a rank to another are a
thread of their own, for they overlap its computes. An arrow leads from each send to its receive.
Source: the Trace Event Format document, events "M", "X", "s" and "f"; times in microseconds.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from backend.codec import from_json
from backend.errors import InvalidInput
from backend.pipeline.actions import Action, Collective, Message, Recv, Send, Step
from backend.pipeline.kinds import kind
from backend.pipeline.notation import format_action, parse_action
from backend.pipeline.shape import Shape
from backend.pipeline.timeline import Span, Timeline

MICROSECONDS = 1e6
MOST_RANKS = 2**20
MOST_ACTIONS = 2**53
"""More are of no program; a list per rank and a column of int64 are made of what is read."""
Event = dict[str, Any]


def write_trace(timeline: Timeline, shape: Shape | None = None) -> str:
    """The JSON text. `shape` says which ranks share a device; without it none do."""
    events = [*_names(timeline, shape), *_events(timeline, shape)]
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class _Place:
    action: str
    rank: Annotated[int, Field(ge=0, lt=MOST_RANKS)]
    index: Annotated[int, Field(ge=0, le=MOST_ACTIONS)]


@dataclass(frozen=True, slots=True)
class _Duration:
    ph: str
    ts: float = 0.0
    dur: float = 0.0
    args: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class _Trace:
    traceEvents: tuple[_Duration, ...]  # noqa: N815 - the format's own name


def read_trace(text: str | bytes) -> Timeline:
    """The timeline that `write_trace` wrote, to the nanosecond. Raises `InvalidInput` on
    other JSON and on events of another program's making."""
    trace: _Trace = from_json(_Trace, text)
    spans = [_span(event) for event in trace.traceEvents if event.ph == "X"]
    return Timeline.of(sorted(spans, key=lambda span: (span.rank, span.index)))


def _span(event: _Duration) -> Span:
    try:
        place: _Place = from_json(_Place, json.dumps(event.args))
    except InvalidInput as fault:
        raise InvalidInput(
            f"an event at {event.ts:g} us is not of Stageflow: {fault}",
            "Only traces that Stageflow wrote can be read back.",
        ) from None
    start = event.ts / MICROSECONDS
    end = (event.ts + event.dur) / MICROSECONDS
    return Span(place.rank, place.index, parse_action(place.action), start, end)


def _names(timeline: Timeline, shape: Shape | None) -> Iterator[Event]:
    threads = {_thread(span, timeline.num_ranks): span for span in timeline.spans}
    for thread, span in sorted(threads.items()):
        device = _device(span.rank, shape)
        to = f" to rank {span.action.to}" if isinstance(span.action, Send) else ""
        yield _meta("process_name", device, 0, name=f"device {device}")
        yield _meta("process_sort_index", device, 0, sort_index=device)
        yield _meta("thread_name", device, thread, name=f"rank {span.rank}{to}")
        yield _meta("thread_sort_index", device, thread, sort_index=thread)


def _thread(span: Span, num_ranks: int) -> int:
    """The rank, or a number beyond all ranks for each pair of ranks."""
    if isinstance(span.action, Send):
        return (span.rank + 1) * num_ranks + span.action.to
    return span.rank


def _meta(what: str, process: int, thread: int, **said: str | int) -> Event:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": said}


def _events(timeline: Timeline, shape: Shape | None) -> Iterator[Event]:
    arrows: dict[tuple[int, int, Message], int] = {}
    for span in timeline.spans:
        place: Event = {
            "pid": _device(span.rank, shape),
            "tid": _thread(span, timeline.num_ranks),
        }
        yield {
            "name": _name(span.action),
            "cat": kind(span.action),
            "ph": "X",
            "ts": span.start * MICROSECONDS,
            "dur": span.seconds * MICROSECONDS,
            **place,
            "args": {"action": format_action(span.action), "rank": span.rank, "index": span.index},
        }
        if isinstance(span.action, Send | Recv):
            yield _arrow(span, arrows) | place


def _arrow(span: Span, arrows: dict[tuple[int, int, Message], int]) -> Event:
    """The start of an arrow at a send, its end at the receive."""
    action = span.action
    if isinstance(action, Send):
        key, phase, time = (span.rank, action.to, action.message), "s", span.start
    else:
        assert isinstance(action, Recv)
        key, phase, time = (action.source, span.rank, action.message), "f", span.end
    number = arrows.setdefault(key, len(arrows))
    event = {"name": "message", "cat": "message", "ph": phase, "id": number}
    return event | {"ts": time * MICROSECONDS} | ({"bp": "e"} if phase == "f" else {})


def _device(rank: int, shape: Shape | None) -> int:
    return shape.device_of(rank) if shape else rank


def _name(action: Action) -> str:
    if isinstance(action, Send | Recv):
        message = action.message
        return f"{kind(action)} {message.flow} {message.stage}.{message.microbatch}"
    if isinstance(action, Collective | Step):
        return f"{kind(action)} {action.stage}"
    return f"{kind(action)} {action.stage}.{action.microbatch}"
