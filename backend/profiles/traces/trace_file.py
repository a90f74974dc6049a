"""A trace of torch.profiler (Chrome's JSON, also gzipped), read into the events that matter here.

Times are seconds on the clock of the machine: torch writes microseconds since
`baseTimeNanoseconds`, which the ranks of a run have in common.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

import orjson

from backend.codec import num_values
from backend.errors import InvalidInput

MOST_BYTES = 128 * 2**20
"""Of a trace, unpacked."""
MOST_VALUES = 5_000_000
"""Of its JSON: in memory they take half a gigabyte, and reading them a second."""
GZIP = b"\x1f\x8b"
HOW = (
    "Give what export_chrome_trace of torch.profiler has written, of a few steps; the guide of "
    "traces has an example."
)
LESS = "Record fewer steps (schedule(wait=1, warmup=1, active=5)), and without with_stack."
RANGES = frozenset({"user_annotation", "python_function"})
LAUNCHES = frozenset({"cuda_runtime", "cuda_driver"})
DEVICE = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})
KEPT = RANGES | LAUNCHES | DEVICE | {"cpu_op"}


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """Something that took time on a thread of the processor or on a stream; `start` and `end` in
    seconds."""

    name: str
    category: str
    thread: str
    start: float
    end: float
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return self.end - self.start

    @property
    def sequence(self) -> int | None:
        """The number that a forward operation shares with its backward."""
        number = self.facts.get("Sequence number")
        return number if isinstance(number, int) and number >= 0 else None

    @property
    def correlation(self) -> int | None:
        """The number that a launch shares with what it launched."""
        number = self.facts.get("correlation")
        return number if isinstance(number, int) and number > 0 else None


@dataclass(frozen=True, slots=True)
class Trace:
    """What a process did, in the order of time. `rank` as torch.distributed had it, None where the
    trace does not say; `device` the name of the GPU, "cpu" without one."""

    name: str
    events: tuple[TraceEvent, ...]
    rank: int | None = None
    device: str = "cpu"

    def of(self, *categories: str) -> Iterator[TraceEvent]:
        return (event for event in self.events if event.category in categories)


def read_torch_trace(name: str, data: bytes) -> Trace:
    """The trace in a file's bytes. Raises `InvalidInput` where it is none, is cut off or is
    too large."""
    if len(data) > MOST_BYTES:
        raise _too_large(name, len(data))
    try:
        text = _unpacked(name, data) if data[:2] == GZIP else data
        if (values := num_values(text)) > MOST_VALUES:
            told = f"{name} has {values:,} values; a trace may have {MOST_VALUES:,}"
            raise InvalidInput(told, LESS)
        found = orjson.loads(text)
    except orjson.JSONDecodeError as fault:
        raise InvalidInput(f"{name} is not JSON, or cut off: {fault}", HOW) from None
    body = {"traceEvents": found} if isinstance(found, list) else found
    if not isinstance(body, dict) or not isinstance(body.get("traceEvents"), list):
        raise InvalidInput(f"{name} is JSON, but not a trace: it has no traceEvents", HOW)
    base: Any = body.get("baseTimeNanoseconds")
    origin = float(base) / 1e9 if _is_number(base) else 0.0
    events = sorted(_events(body["traceEvents"], origin), key=lambda event: event.start)
    if not events:
        raise InvalidInput(f"{name} is a trace in which nothing took time", HOW)
    return Trace(name, tuple(events), _rank(body), _device(body, events))


def _too_large(name: str, size: int) -> InvalidInput:
    """What is said of a trace of so many bytes, which need not be read for it."""
    return InvalidInput(
        f"{name} has {size / 2**20:,.0f} MiB; a trace may have {MOST_BYTES / 2**20:,.0f}", LESS
    )


def read_trace_path(path: Path) -> Trace:
    """The trace in a file, which is not read where it is too large. Raises `InvalidInput`."""
    return read_torch_trace(path.name, _content(path))


def trace_entry(path: Path) -> dict[str, str]:
    """A trace as it is sent, by name and unpacked text. Raises `InvalidInput`."""
    data = _content(path)
    text = _unpacked(path.name, data) if data[:2] == GZIP else data
    return {"name": path.name, "trace": text.decode("utf-8", "replace")}


def _content(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise _too_large(path.name, size)
        return path.read_bytes()
    except OSError as fault:
        raise InvalidInput(
            f"{path} cannot be read: {fault.strerror}", "Give the path of a trace."
        ) from None


def is_trace(data: bytes) -> bool:
    """Whether a file may be a trace, from its beginning."""
    return data[:2] == GZIP or b'"traceEvents"' in data[: 1 << 20] or data[:2] == b"[{"


def _unpacked(name: str, data: bytes) -> bytes:
    unpack = zlib.decompressobj(wbits=31)
    try:
        found = unpack.decompress(data, MOST_BYTES + 1)
    except zlib.error as fault:
        raise InvalidInput(f"{name} is not a gzip file: {fault}", HOW) from None
    if len(found) > MOST_BYTES:
        raise _too_large(name, len(found))
    if not unpack.eof:
        raise InvalidInput(f"{name} is a gzip file that is cut off", HOW)
    return found


def _events(rows: list[Any], origin: float) -> Iterator[TraceEvent]:
    """Those with a length and of a kind that is read; others, of any shape, are left out."""
    for row in rows:
        if not isinstance(row, dict) or row.get("ph") != "X" or row.get("cat") not in KEPT:
            continue
        start: Any = row.get("ts")
        took: Any = row.get("dur")
        facts = row.get("args")
        if not (_is_number(start) and _is_number(took)) or float(took) < 0:
            continue
        began = origin + float(start) / 1e6
        yield TraceEvent(
            name=str(row.get("name", "")),
            category=row["cat"],
            thread=f"{row.get('pid')}/{row.get('tid')}",
            start=began,
            end=began + float(took) / 1e6,
            facts=facts if isinstance(facts, dict) else {},
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _rank(body: dict[str, Any]) -> int | None:
    told = body.get("distributedInfo")
    rank = told.get("rank") if isinstance(told, dict) else None
    return rank if isinstance(rank, int) and 0 <= rank < 2**31 else None


def _device(body: dict[str, Any], events: list[TraceEvent]) -> str:
    if not any(event.category == "kernel" for event in events):
        return "cpu"
    devices = body.get("deviceProperties")
    first = devices[0] if isinstance(devices, list) and devices else {}
    name = first.get("name") if isinstance(first, dict) else None
    return str(name or "GPU")[:200]
