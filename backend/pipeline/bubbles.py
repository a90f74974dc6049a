"""How much of a timeline is waiting: per rank, and over all of them."""

from collections import defaultdict

from backend.pipeline.actions import Compute
from backend.pipeline.timeline import Timeline


def waiting(timeline: Timeline) -> tuple[float, ...]:
    """Per rank the share (0 to 1) of the makespan in which it does not compute.

    Messages, all-reduces, warm-up and drain all count as waiting, so that a measured and a
    predicted timeline mean the same: a rank cannot tell its wait from its transfer.
    """
    busy: defaultdict[int, float] = defaultdict(float)
    for span in timeline.spans:
        if isinstance(span.action, Compute):
            busy[span.rank] += span.seconds
    makespan = timeline.makespan
    return tuple(
        1.0 - busy[rank] / makespan if makespan else 0.0 for rank in range(timeline.num_ranks)
    )


def bubble(timeline: Timeline) -> float:
    """The share (0 to 1) of all rank time that is waiting; 0 for an empty timeline."""
    shares = waiting(timeline)
    return sum(shares) / len(shares) if shares else 0.0
