"""How each local head is made. Adding one is its file, a line here, and its kind in
`backend.runs.request.local_heads`."""

from collections.abc import Callable

from backend.runs.request.local_heads import LINEAR, LOW_RANK, SIMILARITY
from workers.runtime.compute.local_heads.features import Features
from workers.runtime.compute.local_heads.head import HeadSize, LocalHead
from workers.runtime.compute.local_heads.linear import linear
from workers.runtime.compute.local_heads.low_rank import low_rank
from workers.runtime.compute.local_heads.similarity import similar

HEADS: dict[str, Callable[[Features, HeadSize], LocalHead]] = {
    LINEAR: linear,
    SIMILARITY: similar,
    LOW_RANK: low_rank,
}
