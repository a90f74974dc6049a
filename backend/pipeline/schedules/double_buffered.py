"""PipeDream-2BW: 1F1B that never drains, one update per batch, two versions of the weights.

Last but one of many pipeline ranks, batch 2: F0 F1 B0 F2 B1 step F3 B2 B3 step.
"""

from backend.errors import InvalidInput
from backend.pipeline.schedules.depth import Depth
from backend.pipeline.schedules.pipedream import warm_up
from backend.pipeline.schedules.schedule import Schedule
from backend.pipeline.shape import Shape
from backend.pipeline.versions import one_batch_late
from backend.pipeline.warm_up import warm_up_of


def two_versions(at: Depth) -> int:
    """The newest and the one before it."""
    return min(2, at.num_batches)


def ahead_of(replicas: tuple[int, ...], pipeline_rank: int, run_ahead: int = 0) -> int:
    """What all replicas at `pipeline_rank` run ahead together."""
    here = replicas[pipeline_rank]
    return warm_up_of(-(-sum(replicas[pipeline_rank:]) // here), run_ahead) * here


def least_batch(replicas: tuple[int, ...], run_ahead: int) -> int:
    """As many as any pipeline rank runs ahead."""
    ranks = range(len(replicas))
    return max(ahead_of(replicas, pipeline_rank, run_ahead) for pipeline_rank in ranks)


def long_batches(shape: Shape) -> None:
    """A rank must get at least as much of a batch as it runs ahead; on a straight pipeline
    this is m >= p (PipeDream-2BW, section 3.1), and m >= p + a (p-1) where it runs a further ahead
    per hop (ours): then weights are one update late and two versions alive whatever a is."""
    for rank in shape.coordinates if shape.shares else ():
        fewest, needed = min(map(len, rank.batches)), warm_up(rank)
        if fewest < needed:
            raise InvalidInput(
                f"2bw updates every {shape.batch} microbatches, of which rank {rank.rank} takes "
                f"{fewest} by its share, but it runs {needed} ahead",
                advice="Use larger batches, fewer devices, or a schedule that flushes.",
            )
    for pipeline_rank in range(shape.pipeline_size):
        needed = ahead_of(shape.replicas, pipeline_rank, shape.run_ahead)
        if shape.batch < needed:
            raise InvalidInput(
                f"2bw updates every {shape.batch} microbatches, but pipeline rank {pipeline_rank} "
                f"runs {needed} ahead",
                advice=f"Use batches of {needed} or more microbatches, fewer devices, or run less "
                "far ahead.",
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
    runs_ahead=True,
    grows_older=False,
)
