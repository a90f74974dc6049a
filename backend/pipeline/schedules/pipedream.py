"""PipeDream: 1F1B that never drains, a step after every backward; three ways with versions.

Last but one of many pipeline ranks: F0 F1 B0 step F2 B1 step F3 B2 step B3 step; run ahead 1:
F0 F1 F2 B0 step F3 B1 step B2 step B3 step.
"""

from dataclasses import replace

from backend.pipeline.schedules.depth import Depth
from backend.pipeline.schedules.schedule import Schedule, once_per_round, one_version
from backend.pipeline.versions import current, from_the_input
from backend.pipeline.warm_up import warm_up_of


def warm_up(at: Depth) -> int:
    """1F1B's forwards, and as many further ones per hop as the shape runs ahead (ours)."""
    return warm_up_of(at.in_flight, at.run_ahead)


def one_per_microbatch(at: Depth) -> int:
    """A version is kept for each microbatch in flight."""
    return min(warm_up(at), at.segment_here)


def live_with_vertical_sync(at: Depth) -> int:
    """At most 1 + ceil((n - 1 - replica) / r_s) where the input stage has n microbatches in
    flight: a straight pipeline keeps as many versions at every pipeline rank as it is deep (ours
    for replicas)."""
    before = at.at_input - 1 - at.replica
    return min(1 - (-before // at.replicas_here), at.segment_here)


PIPEDREAM = Schedule(
    name="pipedream",
    title="PipeDream (1F1B with weight stashing)",
    source="Narayanan et al., SOSP 2019, sections 3.2 and 3.3",
    warm_up=warm_up,
    updates=once_per_round,
    live=one_per_microbatch,
    flushes=False,
    batched=False,
    runs_ahead=True,
)
VERTICAL_SYNC = replace(
    PIPEDREAM,
    name="pipedream-vertical-sync",
    title="PipeDream with vertical sync",
    source="Narayanan et al., SOSP 2019, section 3.3",
    live=live_with_vertical_sync,
    versions=from_the_input,
    no_slower=PIPEDREAM.name,
)
NAIVE = replace(
    PIPEDREAM,
    name="pipedream-naive",
    title="PipeDream without stashing (for comparison only)",
    source="Narayanan et al., SOSP 2019, section 3.3: why versions are stashed",
    live=one_version,
    versions=current,
    consistent=False,
)
