"""PipeDream-2BW: 1F1B that never drains, one update per batch, two versions of the weights.

Last but one of many pipeline ranks, batch 2: F0 F1 B0 F2 B1 step F3 B2 B3 step.
"""

from backend.errors import InvalidInput
from backend.pipeline.schedules.depth import Depth
from backend.pipeline.schedules.flush import warm_up
from backend.pipeline.schedules.schedule import Schedule
from backend.pipeline.shape import Shape
from backend.pipeline.versions import one_batch_late


def two_versions(at: Depth) -> int:
    """The newest and the one before it."""
    return min(2, at.num_batches)


def ahead_of(replicas: tuple[int, ...], pipeline_rank: int) -> int:
    """What all replicas at `pipeline_rank` run ahead together."""
    here = replicas[pipeline_rank]
    return -(-sum(replicas[pipeline_rank:]) // here) * here


def least_batch(replicas: tuple[int, ...]) -> int:
    """As many as any pipeline rank runs ahead."""
    return max(ahead_of(replicas, pipeline_rank) for pipeline_rank in range(len(replicas)))


def long_batches(shape: Shape) -> None:
    """A rank must get at least as much of a batch as it runs ahead; on a straight pipeline
    this is m >= p (PipeDream-2BW, section 3.1)."""
    for pipeline_rank in range(shape.pipeline_size):
        needed = ahead_of(shape.replicas, pipeline_rank)
        if shape.batch < needed:
            raise InvalidInput(
                f"2bw updates every {shape.batch} microbatches, but pipeline rank {pipeline_rank} "
                f"runs {needed} ahead",
                advice=f"Use batches of {needed} or more microbatches, or fewer devices.",
            )


DOUBLE_BUFFERED = Schedule(
    name="2bw",
    title="PipeDream-2BW (double-buffered weights)",
    source="Narayanan et al., ICML 2021, arXiv 2006.09503, section 3.1",
    warm_up=warm_up,
    live=two_versions,
    versions=one_batch_late,
    flushes=False,
    admits=long_batches,
    least_batch=least_batch,
)
