"""AFP: 1F1B with a flush whose forwards run further ahead, so that messages have time.

Last but one of many pipeline ranks, advance 1: F0 F1 F2 B0 F3 B1 F4 B2 B3 B4 step.
"""

from backend.pipeline.schedules.depth import Depth
from backend.pipeline.schedules.schedule import Schedule
from backend.pipeline.warm_up import warm_up_of


def warm_up(at: Depth) -> int:
    """As many further forwards as the advance of the shape: 7, 5, 3, 1 for four pipeline ranks and
    an advance of 1, as the paper's figures show; the formula for any, and for replicas, is ours."""
    return warm_up_of(at.in_flight, at.advance)


AFP = Schedule(
    name="afp",
    title="Advance forward propagation (AvgPipe)",
    source="Chen, Xu, Qian, Zhou, PPoPP 2023, doi 10.1145/3572848.3577484",
    warm_up=warm_up,
    parallel=True,
    advances=(0, 1),
)
