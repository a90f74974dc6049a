"""What a replica of a stage holds, by the number of replicas: as steps, for arrays of stages."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from backend.planning.cost import Floats


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a replica of a stage holds, by the number of its replicas: entry n of `in_flight` and
    of `copies` of the weights (versions, gradient and state) holds from `replicas[n]` replicas
    on."""

    replicas: Floats
    in_flight: Floats
    copies: Floats

    @classmethod
    def of(cls, several: Sequence["Bounds"]) -> "Bounds":
        """Those of several stages, one in a row; the last entry of the shorter ones again."""
        counts = np.array([len(each.replicas) for each in several])[:, None]
        at = np.cumsum(counts)[:, None] - counts + np.minimum(np.arange(counts.max()), counts - 1)
        every = ([x.replicas for x in several], [x.in_flight for x in several])
        return cls(*(np.concatenate(e)[at] for e in (*every, [x.copies for x in several])))
