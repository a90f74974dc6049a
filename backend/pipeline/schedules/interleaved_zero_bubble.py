"""Interleaved zero bubble: interleaving whose weights' halves wait, so that each rank idles less.

2 pipeline ranks, 2 chunks, 4 microbatches; pipeline rank 1 holds stages 1 and 3:

1F0 1F1 3F0 | 3I0 3F1 | 3I1 3W0 1F2 | 1I0 3W1 1F3 | 1I1 1W0 3F2 | 3I2 1W1 3F3 | 3I3 3W2 | ...

Where F = I = W a batch costs p - 1 chunks more than its compute, beside 3 (p - 1) of interleaved
1F1B; a rank holds v p chunks, more than that needs behind the first rank.
"""

from backend.pipeline.schedules.depth import Depth
from backend.pipeline.schedules.interleaved import whole_rounds
from backend.pipeline.schedules.schedule import Schedule
from backend.pipeline.schedules.zero_bubble import delay


def warm_up(at: Depth) -> int:
    """One more than (p-1-s) + (v-1) p, of all chunks (`ScheduleInterleavedZeroBubble` of torch
    2.13). One chunk makes it ZB-H1."""
    return at.in_flight + (at.chunks - 1) * at.pipeline_size


INTERLEAVED_ZB = Schedule(
    name="interleaved-zb",
    title="Interleaved zero bubble",
    source="Qi et al., ICLR 2024, arXiv 2401.10241; torch 2.13, ScheduleInterleavedZeroBubble",
    warm_up=warm_up,
    delay=delay,
    chunked=True,
    admits=whole_rounds,
    searched=False,
)
