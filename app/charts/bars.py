"""Spans as columns of numbers: for timelines that are too long for one object per action."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from backend.pipeline.columns import encode
from backend.pipeline.timeline import Timeline

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]

KINDS = "FBIWCDSRA><"
"""The letters of `backend.pipeline.notation`, and D for the loading of a forward's data; a bar's
kind is a place in this word."""

THREADS = 2
_LETTERS = np.zeros(256, np.uint8)
_LETTERS[[ord(letter) for letter in KINDS]] = range(len(KINDS))


@dataclass(frozen=True, slots=True, eq=False)
class Bars:
    """One row per span, by rank, then by index in the rank's program.

    `kind` counts in `KINDS`. What an action does not have is -1: `microbatch`, `version`,
    and `peer`, the rank that a message goes to or comes from. Seconds since the start.
    """

    rank: Ints
    index: Ints
    kind: Ints
    stage: Ints
    microbatch: Ints
    version: Ints
    peer: Ints
    start: Floats
    end: Floats

    def __len__(self) -> int:
        return len(self.rank)

    @property
    def num_ranks(self) -> int:
        return int(self.rank.max(initial=-1)) + 1

    @property
    def seconds(self) -> Floats:
        return self.end - self.start

    @property
    def makespan(self) -> float:
        """Seconds from the first start to the last end (0 when empty)."""
        return float(self.end.max() - self.start.min()) if len(self) else 0.0


def with_loading(bars: Bars, loading: Bars | None) -> Bars:
    """The bars of a segment with those of the loading of its data, which count after all others
    of their rank."""
    if loading is None:
        return bars
    data = replace(
        loading,
        kind=np.full_like(loading.kind, KINDS.index("D")),
        index=loading.index + int(bars.index.max(initial=-1)) + 1,
        version=np.full_like(loading.version, -1),
    )
    pairs = [(getattr(bars, f.name), getattr(data, f.name)) for f in fields(Bars)]
    joined = [np.concatenate(pair) for pair in pairs]
    order = np.lexsort((joined[1], joined[0]))
    return Bars(*(column[order] for column in joined))


def bars_of(timeline: Timeline) -> Bars:
    """The spans of a timeline."""
    return read_bars([encode(timeline.spans)])


def read_bars(batches: Sequence[bytes]) -> Bars:
    """The spans that `backend.pipeline.columns.encode` was given, without an object for each."""
    with ThreadPoolExecutor(THREADS) as pool:  # what unpacks and counts lets the others run
        parts = list(pool.map(_read, (part for data in batches for part in _batches(data))))
    if not parts:
        none, never = np.array([], np.int32), np.array([], np.float64)
        return Bars(none, none, none, none, none, none, none, never, never)
    joined = [np.concatenate(column) for column in zip(*parts, strict=True)]
    rank, index = joined[0], joined[1]
    after = (rank[1:] > rank[:-1]) | ((rank[1:] == rank[:-1]) & (index[1:] >= index[:-1]))
    if after.all():  # as ranks write them
        return Bars(*joined)
    order = np.lexsort((index, rank))
    return Bars(*(column[order] for column in joined))


def _batches(data: bytes) -> Iterator[pa.RecordBatch]:
    yield from pa.ipc.open_file(data).read_all().to_batches()


def _read(batch: pa.RecordBatch) -> list[NDArray[Any]]:
    actions = batch.column("action")
    pick = actions.indices.to_numpy()
    return [
        batch.column("rank").to_numpy(),
        batch.column("index").to_numpy(),
        *(column[pick] for column in parse(actions.dictionary)),
        batch.column("start").to_numpy(),
        batch.column("end").to_numpy(),
    ]


def parse(texts: pa.StringArray) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Kind, stage, microbatch, version and peer of actions as `notation` writes them, all at
    once: the letter of each, and the whole numbers in it in their order.

        2F5@1   stage, microbatch, version      2S@3   stage, version (2R@3[4,5] and 2A too)
        >1:a0.5 peer, stage, microbatch         <0:a0.5 likewise
    """
    if not len(texts):
        none = np.array([], np.int32)
        return none, none, none, none, none
    ends = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset :][: len(texts) + 1]
    raw = np.frombuffer(texts.buffers()[2], np.uint8)[ends[0] : ends[-1]]
    first, second, third = _numbers(raw, ends - ends[0])
    letters = _LETTERS[raw]
    kind = np.maximum.reduceat(letters, (ends - ends[0])[:-1]).astype(np.int32)
    message = kind >= KINDS.index(">")
    alone = (kind >= KINDS.index("S")) & ~message
    none = np.full(len(kind), -1, np.int32)
    return (
        kind,
        np.where(message, second, first),
        np.where(message, third, np.where(alone, none, second)),
        np.where(message, none, np.where(alone, second, third)),
        np.where(message, first, none),
    )


def _numbers(raw: NDArray[np.uint8], ends: Ints) -> tuple[Ints, Ints, Ints]:
    """The first three whole numbers in each text (0 where there is none)."""
    digit = (raw >= ord("0")) & (raw <= ord("9"))
    before = np.concatenate(([False], digit[:-1]))
    before[ends[:-1]] = False
    starts = np.flatnonzero(digit & ~before)
    value, place, left = np.zeros(len(starts), np.int32), starts.copy(), np.arange(len(starts))
    limit = ends[np.searchsorted(ends, starts, side="right")]
    stops = limit.copy()
    while len(left):
        value[left] = value[left] * 10 + (raw[place] - ord("0"))
        place = place + 1
        inside = place < stops
        inside[inside] = digit[place[inside]]
        left, place, stops = left[inside], place[inside], stops[inside]
    at = np.searchsorted(starts, ends[:-1])
    count = np.diff(np.append(at, len(starts)))
    padded = np.append(value, [0, 0, 0]).astype(np.int32)
    found = [np.where(count > n, padded[at + n], 0).astype(np.int32) for n in range(3)]
    return found[0], found[1], found[2]
