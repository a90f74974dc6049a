"""What the schedules of two chunks in a V share; one chunk makes each of them ZB-H1."""

from functools import partial

from backend.pipeline.chunk_placement import Placement
from backend.pipeline.schedules.flush import warm_up
from backend.pipeline.schedules.schedule import Schedule
from backend.pipeline.schedules.zero_bubble import delay

v_schedule = partial(
    Schedule,
    warm_up=warm_up,
    delay=delay,
    chunked=True,
    placement=Placement.V,
    searched=False,
)
"""With `name`, `title`, `source`, `batch_order` and `admits`."""
