"""A layer that the replicas of its stage split by channels, as a plan names it."""

from dataclasses import dataclass
from itertools import accumulate

from backend.planning.channels.types import LayerType


@dataclass(frozen=True, slots=True)
class LayerSplit:
    """One layer, by its name in the profile. Each replica of its stage has a slice of its weights,
    in the ratio of `parts`, one for each replica; () = equal ones."""

    layer: str
    kind: LayerType
    parts: tuple[int, ...] = ()


def sizes_of(count: int, parts: tuple[int, ...]) -> tuple[int, ...]:
    """`count` channels in the ratio of `parts`: each slice ends at the nearest whole channel."""
    ends = [(count * end + sum(parts) // 2) // sum(parts) for end in accumulate(parts)]
    return tuple(stop - first for first, stop in zip((0, *ends), ends, strict=False))
