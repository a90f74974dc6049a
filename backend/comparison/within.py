"""What was done beside the actions of a timeline, as far as it fell into them."""

from typing import Protocol

import numpy as np

from backend.pipeline.kinds import Floats, Ints


class SpanColumns(Protocol):
    """Columns of times, each of one action: seconds since the segment began."""

    @property
    def rank(self) -> Ints: ...

    @property
    def index(self) -> Ints: ...

    @property
    def start(self) -> Floats: ...

    @property
    def end(self) -> Floats: ...


def within(actions: SpanColumns, parts: SpanColumns) -> tuple[Ints, Floats]:
    """Of each of the `parts` that are for one of `actions`, which are ordered by rank and index:
    that action's place, and the seconds that fell into it. What was done ahead, beside other work,
    held up nobody."""
    if not len(actions.rank):
        return np.zeros(0, np.int64), np.zeros(0)
    wide = int(max(actions.index.max(initial=0), parts.index.max(initial=0))) + 1
    own, theirs = (found.rank.astype(np.int64) * wide + found.index for found in (actions, parts))
    place = np.minimum(np.searchsorted(own, theirs), len(own) - 1)
    overlap = np.minimum(actions.end[place], parts.end) - np.maximum(
        actions.start[place], parts.start
    )
    met = (own[place] == theirs) & (overlap > 0)
    return place[met], overlap[met]
