"""1F1B with a flush: one forward, one backward inside a batch; drained before each step.

Last but one of many pipeline ranks: F0 F1 B0 F2 B1 F3 B2 B3 step.
"""

from backend.pipeline.schedules.depth import Depth
from backend.pipeline.schedules.schedule import Schedule


def warm_up(at: Depth) -> int:
    """As many forwards as the pipeline that starts here is deep."""
    return at.in_flight


FLUSH = Schedule(
    name="1f1b-flush",
    title="1F1B with flush",
    source="PipeDream-Flush: Narayanan et al., ICML 2021, section 3.2",
    warm_up=warm_up,
)
