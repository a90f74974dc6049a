"""Local losses: every stage learns from a loss of its own, and no gradient goes back.

Every pipeline rank, batch 2: F0 B0 F1 B1 step F2 B2 F3 B3 step. What a forward gives is sent at
once, without its graph; the stage's own head and loss belong to its backward.
"""

from backend.pipeline.schedules.depth import Depth
from backend.pipeline.schedules.schedule import Schedule


def one(at: Depth) -> int:
    """Nothing comes back that a second forward could be waiting for."""
    return 1


LOCAL = Schedule(
    name="local",
    title="Local losses (no gradient between stages)",
    source="Decoupled greedy learning: Belilovsky, Eickenberg and Oyallon, ICML 2020, section 2",
    warm_up=one,
    flushes=False,
    searched=False,
    local=True,
    warning="Each stage learns from a loss of its own, not from the model's: accuracy may be lower "
    "than with backpropagation, the more so the more stages there are.",
)
