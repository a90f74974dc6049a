"""A timeline as bytes for the canvas that draws it (`app/components/timeline/canvas/canvas.js`).

u32 length of a JSON header, the header, then columns of numbers, each at a multiple of 8.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from app.charts import palette
from app.charts.bars import KINDS, LOADING, Bars
from backend.pipeline.kinds import FACTS

HERE = Path(__file__).parents[1] / "components" / "timeline" / "canvas"
SCRIPT, STYLE = HERE / "canvas.js", HERE / "canvas.css"
ALIKE = 3  # replicas of a stage that fold into one row
LEGIBLE = 10  # microbatches side by side whose numbers can be read
WORDS = {facts.letter: facts.word for facts in FACTS.values()} | {LOADING: "loading data"}
TYPES = {"f4": "f32", "i4": "i32", "i2": "i16", "i1": "i8", "u4": "u32", "u1": "u8"}
TICKS = 2**32 - 1  # of the whole time axis: a start is one of them
Columns = dict[str, NDArray[Any]]


def canvas_bytes(
    main: Bars,
    ghost: Bars | None = None,
    *,
    names: Sequence[str],
    alt: str,
    param: str = "",
    group: str = "",
    first: tuple[float, float] | None = None,
    extent: float = 0.0,
    tall: int = 620,
    title: str = "",
    follows: bool = False,
    slack: NDArray[np.float64] | None = None,
) -> bytes:
    """`main` with `ghost` thin below it, one row per name. Replicas beside each other fold into
    one row, at first where there is no ghost: what differs among measured ones is to be seen.

    `param` is the URL parameter that keeps the window, `group` joins the windows of several
    timelines, `first` is the window at first (seconds; None = all), `extent` at least how far
    the time axis reaches, `tall` the most pixels before the ranks scroll. `follows`: it stands
    below the one of its group that has the buttons. `slack`: the seconds by which each action of
    `main` may end later.
    """
    ends = [_end(main), _end(ghost) if ghost is not None else 0.0]
    extent = max(extent, *ends) or 1.0
    sets = [_columns(main, len(names), extent, ghost, slack)]
    if ghost is not None:
        sets.append(_columns(ghost, len(names), extent))
    header = {
        "names": list(names),
        "folds": (folds := list(_folds(main))),
        "folded": bool(folds) and ghost is None,
        "alt": alt,
        "param": param,
        "group": group,
        "first": first,
        "most": tall,
        "title": title,
        "follows": follows,
        "extent": extent,
        "tick": extent / TICKS,
        "kinds": [_look(letter) for letter in KINDS],
        "present": np.unique(sets[0]["kind"]).tolist(),
    }
    return _joined(header, sets, ends)


def row_names(known: Sequence[str], bars: Bars) -> list[str]:
    """The name of each rank's row: those that are `known`, then plain ones."""
    return [*known, *(f"rank {rank}" for rank in range(len(known), bars.num_ranks))]


def _folds(bars: Bars) -> Iterator[dict[str, object]]:
    """Neighbouring ranks of the same stages, `ALIKE` at least."""
    computes = bars.kind == KINDS.index("F")  # a message names a stage of its peer
    works_on = np.zeros((bars.num_ranks, int(bars.stage.max(initial=0)) + 1), bool)
    works_on[bars.rank[computes], bars.stage[computes]] = True
    first = 0
    for stages, ranks in groupby(works_on.tolist()):
        count = len(list(ranks))
        if count >= ALIKE and any(stages):
            named = ", ".join(str(stage) for stage in np.flatnonzero(stages))
            yield {"first": first, "count": count, "name": f"stage {named} · 1 of {count}"}
        first += count


def opening(bars: Bars) -> tuple[float, float] | None:
    """The window in which the first microbatches are worked on, in seconds; None where that
    is all there is."""
    first = (bars.microbatch >= 0) & (bars.microbatch < LEGIBLE)
    if not first.any() or bars.microbatch.max() < 1.5 * LEGIBLE:
        return None
    return float(np.min(bars.start[first])), float(np.max(bars.end[first]))


def _look(letter: str) -> dict[str, object]:
    word = WORDS[letter]
    colour = palette.COLOURS[word]
    makes = letter in "SRA"
    return {"word": word, "colour": colour, "on": palette.on(colour), "makes": makes}


def _end(bars: Bars) -> float:
    return float(bars.end.max(initial=0.0))


def _columns(
    bars: Bars,
    num_ranks: int,
    extent: float,
    predicted: Bars | None = None,
    slack: NDArray[np.float64] | None = None,
) -> Columns:
    """What takes time and is drawn, by track: a rank's computes and collectives, then what it does
    beside them, sends and the loading of data. Receives are the gaps between them. Starts are
    ticks, numbers as narrow as they can be."""
    beside = (bars.kind == KINDS.index(">")) | (bars.kind == KINDS.index(LOADING))
    pick = np.flatnonzero((bars.kind != KINDS.index("<")) & (bars.end > bars.start))
    track = 2 * bars.rank[pick] + beside[pick]
    order = _by_track(track, bars.start[pick])
    pick, track = pick[order], track[order]
    columns: Columns = {
        "rows": np.searchsorted(track, np.arange(2 * num_ranks + 1)).astype(np.uint32),
        "ticks": np.round(bars.start[pick] * (TICKS / extent)).astype(np.uint32),
        "long": bars.seconds[pick].astype(np.float32),
        "kind": bars.kind[pick].astype(np.uint8),
        "stage": _narrow(bars.stage[pick]),
        "microbatch": _narrow(bars.microbatch[pick]),
        "version": _narrow(bars.version[pick]),
        "peer": _narrow(bars.peer[pick]),
    }
    if predicted is not None:
        columns["expected"] = expected_seconds(bars, predicted)[pick].astype(np.float32)
    if slack is not None:
        columns["slack"] = np.where(slack > extent / TICKS, slack, 0.0)[pick].astype(np.float32)
    return columns


def _by_track(track: NDArray[Any], start: NDArray[np.float64]) -> NDArray[np.int64]:
    """The order by track, then by start; a rank's actions mostly come in the order of time."""
    order = np.argsort(track.astype(np.min_scalar_type(int(track.max(initial=0)))), kind="stable")
    same, later = np.diff(track[order]) == 0, np.diff(start[order]) >= 0
    return order if (later | ~same).all() else np.lexsort((start, track))


def _narrow(values: NDArray[np.int64]) -> NDArray[Any]:
    most = int(values.max(initial=0))
    return values.astype(np.int8 if most < 2**7 else np.int16 if most < 2**15 else np.int32)


def expected_seconds(measured: Bars, predicted: Bars) -> NDArray[np.float64]:
    """Of each measured span how long it was predicted to take; NaN where it was not."""
    found = np.full(len(measured), np.nan)
    ours, theirs = partners(measured, predicted)
    found[ours] = predicted.seconds[theirs]
    return found


def partners(one: Bars, other: Bars) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Places in `one` and in `other` of the actions that both have, joined on rank and index.
    Inputs and targets may have been loaded for the same action: such an index comes twice."""
    wide = int(max(one.index.max(initial=0), other.index.max(initial=0))) + 1
    mine, theirs = (bars.rank.astype(np.int64) * wide + bars.index for bars in (one, other))
    if np.array_equal(mine, theirs):  # the usual: every action was predicted, none besides
        here = there = np.arange(len(mine))
    else:
        _, here, there = np.intersect1d(mine, theirs, return_indices=True)
    same = np.ones(len(here), bool)
    for column in ("kind", "stage", "microbatch", "version", "peer"):
        same &= getattr(one, column)[here] == getattr(other, column)[there]
    return here[same], there[same]


def _joined(header: dict[str, Any], sets: Sequence[Columns], ends: Sequence[float]) -> bytes:
    """Offsets are in the header, whose length they change: it is padded to a fixed size."""
    blocks: list[bytes] = []
    told: list[dict[str, Any]] = []
    place = 0
    for columns, end in zip(sets, ends, strict=False):
        entry: dict[str, list[Any]] = {}
        for name, values in columns.items():
            entry[name] = [TYPES[values.dtype.str[1:]], place, len(values)]
            blocks.append(values.tobytes() + b"\0" * (-values.nbytes % 8))
            place += len(blocks[-1])
        told.append({"columns": entry, "extent": end})
    room = (len(orjson.dumps(header | {"sets": told})) + 32 * len(blocks)) // 8 * 8 + 12
    for one in told:
        for column in one["columns"].values():
            column[1] += 4 + room
    text = orjson.dumps(header | {"sets": told}).ljust(room)
    return b"".join([room.to_bytes(4, "little"), text, *blocks])
