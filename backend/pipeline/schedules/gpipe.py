"""GPipe: all forwards of a batch, then all backwards, then one step.

F0 F1 F2 F3 B0 B1 B2 B3 step.
"""

from backend.pipeline.schedules.depth import Depth
from backend.pipeline.schedules.schedule import Schedule


def warm_up(at: Depth) -> int:
    """The whole batch."""
    return at.batch_here


GPIPE = Schedule(
    name="gpipe",
    title="GPipe",
    source="Huang et al., NeurIPS 2019, figure 2c",
    warm_up=warm_up,
)
