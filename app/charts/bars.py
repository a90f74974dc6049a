"""A timeline as the canvas draws it: columns of numbers, kinds as the letters that it knows."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from backend.pipeline.columns import decode
from backend.pipeline.kinds import FACTS, Is, Kind
from backend.pipeline.timeline import Timeline

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

LOADING = "D"
MESSAGES = "><"
KINDS = "".join(f.letter for f in FACTS.values() if f.letter not in MESSAGES) + LOADING + MESSAGES
"""The letters of `backend.pipeline.notation`, and D for the loading of a forward's data; a bar's
kind is a place in this word."""

THREADS = 2
_PLACES = np.array([KINDS.index(FACTS[kind].letter) for kind in Kind])


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
        kind=np.full_like(loading.kind, KINDS.index(LOADING)),
        index=loading.index + int(bars.index.max(initial=-1)) + 1,
        version=np.full_like(loading.version, -1),
    )
    pairs = [(getattr(bars, f.name), getattr(data, f.name)) for f in fields(Bars)]
    joined = [np.concatenate(pair) for pair in pairs]
    order = np.lexsort((joined[1], joined[0]))
    return Bars(*(column[order] for column in joined))


def bars_of(timeline: Timeline) -> Bars:
    """The spans of a timeline."""
    rows = timeline.rows
    return Bars(
        rank=timeline.rank,
        index=timeline.index,
        kind=_PLACES[rows.kind],
        stage=rows.stage,
        microbatch=rows.microbatch,
        version=rows.version,
        peer=np.where(rows.are(Is.MESSAGE), rows.peer, -1),
        start=timeline.start,
        end=timeline.end,
    )


def read_bars(batches: Sequence[bytes]) -> Bars:
    """The spans that `backend.pipeline.columns.encode` was given."""
    with ThreadPoolExecutor(THREADS) as pool:  # what unpacks and counts lets the others run
        return bars_of(Timeline.joined(list(pool.map(decode, batches))))
