"""How the replicas of a stage sum their gradients: in buckets that travel round a ring while the
backward still goes on."""

from collections.abc import Iterator
from dataclasses import dataclass

from backend.cluster.ring import RingLinks
from backend.pipeline.links import SumPart
from backend.planning.thresholds import Thresholds
from backend.profiles.layer import LayerSums
from backend.profiles.state_precision import FULL

BUCKET_BYTES = 4 * 2**20
"""Of a bucket of gradients as ranks send it. Long enough to use the link, short enough to start
early (torch's own default is 25 MiB with a first bucket of 1; on gloo 4 MiB were as fast and
started earlier)."""


@dataclass(frozen=True, slots=True)
class StageSums:
    """What the replicas of each stage send to sum gradients of so many bytes, whole or by `codec`.
    What a codec sends is as expected: between two thresholds it is more or less, and which tensors
    are so small that they go whole is not known here."""

    stage_bytes: tuple[float, ...]
    codec: Thresholds | None = None

    def sent(self, stage: int, members: int) -> float:
        """Bytes of one of `members`: 2 (r-1)/r |w|, or what it keeps to each other one."""
        if self.codec is None:
            return 2 * (members - 1) / members * self.stage_bytes[stage]
        return (members - 1) * self._kept(stage, self.codec)

    def seconds(self, stage: int, over: RingLinks) -> float:
        """Of a sum of all at once; by a codec each gathers what all keep."""
        if self.codec is None:
            return over.seconds(self.stage_bytes[stage])
        return over.seconds(over.members * self._kept(stage, self.codec), 1)

    def _kept(self, stage: int, codec: Thresholds) -> float:
        return codec.sent_share(FULL) * self.stage_bytes[stage]


def pieces(
    part: LayerSums, backward: float, over: RingLinks, bucket_bytes: int
) -> Iterator[SumPart]:
    """The buckets of a stage's layers, as a backward of so many seconds fills them; with the last
    one travels the loss."""
    for left, num_bytes in part.buckets(bucket_bytes):
        before = backward * left / part.backward if part.backward else 0.0
        yield SumPart(before, over.seconds(num_bytes))
