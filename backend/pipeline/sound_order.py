"""Whether an order that is kept with a plan may run."""

from functools import lru_cache

from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from backend.pipeline.verify import check

KEPT_SOUND = 64
"""Orders that are known to be sound."""


@lru_cache(KEPT_SOUND)
def check_order(name: str, shape: Shape) -> None:
    """Raises `InvalidInput` and `ProgramUnsound` where the order that `shape` keeps, of one batch
    under the schedule `name`, must not run."""
    check(lower(schedule(name), shape))
