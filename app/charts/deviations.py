"""Measured beside predicted, and where each rank's time went, for timelines of any length."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.charts.bars import KINDS, Bars
from app.charts.canvas import WORDS, partners
from backend.comparison.within import within
from backend.pipeline.kinds import FACTS, Form

DATA, CHECKPOINT, WAITING, IDLE = "loading data", "checkpoint", "waiting", "idle"
CAUSES = {f.letter: f.word for f in FACTS.values() if f.form is not Form.SEND} | {"<": WAITING}
"""What a rank's second was spent on: per kind the word for it; beside them `DATA`, `CHECKPOINT`
and `IDLE`."""
SPENT_ON = dict.fromkeys((*CAUSES.values(), DATA, CHECKPOINT, WAITING, IDLE))
COMPUTES = [KINDS.index(facts.letter) for facts in FACTS.values() if facts.form is Form.COMPUTE]
NONE: Mapping[str, Bars] = {}


def spent(bars: Bars, beside: Mapping[str, Bars] = NONE) -> tuple[dict[str, float], ...]:
    """Per rank the seconds by cause; they add up to the makespan.

    Waiting is time inside a receive; sends overlap with compute and count nowhere. Idle is
    what is left: fill, drain, and in a predicted timeline the wait for the others of an
    all-reduce, which a measured one has inside the all-reduce. `beside` says when what was done
    for which action (its samples loaded, its weights copied): as far as that fell into the
    action itself it is told apart from it.
    """
    ranks, kinds = bars.num_ranks, len(KINDS)
    places = bars.rank.astype(np.int64) * kinds + bars.kind
    sums = np.bincount(places, weights=bars.seconds, minlength=ranks * kinds)
    apart = {cause: np.zeros(ranks) for cause in beside}
    for cause, parts in beside.items():
        place, seconds = within(bars, parts)
        np.add.at(apart[cause], bars.rank[place], seconds)
        np.subtract.at(sums, places[place], seconds)
    rows = [
        {cause: float(row[KINDS.index(letter)]) for letter, cause in CAUSES.items()}
        | {cause: float(seconds[rank]) for cause, seconds in apart.items()}
        for rank, row in enumerate(sums.reshape(ranks, kinds))
    ]
    for row in rows:
        row[IDLE] = max(0.0, bars.makespan - sum(row.values()))
    return tuple({cause: value for cause, value in row.items() if value} for row in rows)


def waiting(bars: Bars) -> float:
    """The share (0 to 1) of all rank time without compute, as `backend.pipeline.bubbles`."""
    whole = bars.makespan * bars.num_ranks
    computes = np.isin(bars.kind, COMPUTES)
    return 1.0 - float(bars.seconds[computes].sum()) / whole if whole else 0.0


class KindError(NamedTuple):
    """All actions of a kind: how many, medians of their seconds, the median of the absolute
    errors as shares of the predicted, and the seconds by which all together were longer."""

    word: str
    number: int
    measured: float
    predicted: float
    error: float | None
    longer: float


@dataclass(frozen=True, slots=True, eq=False)
class Deviations:
    """The actions that keep a rank busy, joined on rank and index; `ours` and `theirs` are
    their places in `measured` and in `predicted`. `unmatched` are in one of the two only."""

    measured: Bars
    predicted: Bars
    ours: NDArray[np.int64]
    theirs: NDArray[np.int64]
    unmatched: int

    @property
    def seconds(self) -> NDArray[np.float64]:
        """Measured minus predicted duration."""
        return self.measured.seconds[self.ours] - self.predicted.seconds[self.theirs]

    @property
    def shares(self) -> NDArray[np.float64]:
        """The same over the predicted duration; NaN where nothing was predicted."""
        wanted = self.predicted.seconds[self.theirs]
        shares = np.full(len(wanted), np.nan)
        return np.asarray(np.divide(self.seconds, wanted, out=shares, where=wanted > 0))

    @property
    def median_share(self) -> float | None:
        """Median of the absolute shares; None where there is none."""
        known = np.abs(self.shares)
        known = known[~np.isnan(known)]
        return float(np.median(known)) if len(known) else None

    def largest(self, count: int) -> NDArray[np.int64]:
        """Places in `ours` of the most seconds, either way, the largest first."""
        far = np.abs(self.seconds)
        if (
            len(far) > 4 * count
        ):  # those at least as far as the last of them, before they are sorted
            top = np.flatnonzero(far >= np.partition(far, -count)[-count])
            return top[np.argsort(-far[top], kind="stable")][:count]
        return np.argsort(-far, kind="stable")[:count]

    def by_kind(self) -> list[KindError]:
        """One row per kind of action, in the order of `KINDS`."""
        kinds = self.measured.kind[self.ours]
        return [self._kind(int(kind), kinds == kind) for kind in np.unique(kinds)]

    def _kind(self, kind: int, own: NDArray[np.bool_]) -> KindError:
        shares = np.abs(self.shares[own])
        shares = shares[~np.isnan(shares)]
        return KindError(
            WORDS[KINDS[kind]],
            int(own.sum()),
            float(np.median(self.measured.seconds[self.ours[own]])),
            float(np.median(self.predicted.seconds[self.theirs[own]])),
            float(np.median(shares)) if len(shares) else None,
            float(self.seconds[own].sum()),
        )


def deviations(measured: Bars, predicted: Bars) -> Deviations:
    """`measured` beside `predicted`, as far as both go."""
    ours, theirs = partners(measured, predicted)
    busy = measured.kind[ours] < KINDS.index(">")
    unmatched = len(measured) + len(predicted) - 2 * len(ours)
    return Deviations(measured, predicted, ours[busy], theirs[busy], unmatched)
