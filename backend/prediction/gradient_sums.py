"""How the replicas of a stage sum their gradients: in buckets that travel round a ring while the
backward still goes on."""

from collections.abc import Iterator

from backend.cluster.ring import RingLinks
from backend.pipeline.links import SumPart
from backend.profiles.layer import LayerSums

BUCKET_BYTES = 4 * 2**20
"""Of a bucket of gradients as ranks send it. Long enough to use the link, short enough to start
early (torch's own default is 25 MiB with a first bucket of 1; on gloo 4 MiB were as fast and
started earlier)."""


def pieces(
    part: LayerSums, backward: float, over: RingLinks, bucket_bytes: int
) -> Iterator[SumPart]:
    """The buckets of a stage's layers, as a backward of so many seconds fills them; with the last
    one travels the loss."""
    for left, num_bytes in part.buckets(bucket_bytes):
        before = backward * left / part.backward if part.backward else 0.0
        yield SumPart(before, over.seconds(num_bytes))
