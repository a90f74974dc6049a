"""What is compared: pairs of a plan and a schedule, as links carry them.

A pair is "source:schedule:batch"; the source is a planner's name, "plan-7" for a kept plan, or
the word of a partition (`backend.planning.cuts`). Without a schedule ("best::4") it is the one that
the planner chooses. Pairs are joined by commas.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm

from backend.pipeline.schedules.catalog import (
    SCHEDULES,
    plannable_schedules,
    training_schedules,
)
from backend.pipeline.schedules.catalog import schedule as schedule_named
from backend.planning.plan import Partition
from backend.prediction.question import PLANNER_NAMES
from backend.whole import is_whole

KEPT = "plan-"
MOST = 12
MOST_BATCH = 1024
LEAST_BATCH = 4


@dataclass(frozen=True, slots=True)
class Pair:
    """`batch` counts microbatches per update of a schedule that updates once per batch."""

    source: str
    schedule: str
    batch: int = 1

    @property
    def plan_id(self) -> int | None:
        """Which kept plan it is about, if it is about one."""
        number = self.source.removeprefix(KEPT)
        is_kept = self.source.startswith(KEPT) and is_whole(number)
        return int(number) if is_kept else None

    @property
    def is_planner(self) -> bool:
        return self.source in PLANNER_NAMES


DEFAULT = ("pipedream", "2bw", "1f1b-flush", "gpipe")
PIPELINES = ("pipedream", "straight", "pipedream-2bw")
"""Planners whose partition is compared to begin with: the first that has several stages; the last
one makes equal stages where memory is short."""
BEST = "best"
BASE = Pair("data-parallel", "pipedream")


def default_pairs(source: str, cut: Partition) -> tuple[Pair, ...]:
    """The best plan, the partition `cut` of the planner `source` under a few schedules, and beside
    them the data parallelism that they are to beat. The batch is two whole rounds of its replicas
    and a microbatch per device at least, so that every device has work and 2BW, which runs a
    round ahead, admits it. The best plan updates as often as the Plan page asks at first."""
    rounds = lcm(*cut.replicas)
    least = max(LEAST_BATCH, 2 * rounds, cut.num_devices)
    batch = min(-(-least // rounds) * rounds, MOST_BATCH)
    known = [member.name for member in training_schedules() if member.name in DEFAULT]
    pairs = [Pair(source, name, batch if SCHEDULES[name].batched else 1) for name in known]
    return (Pair(BEST, "", LEAST_BATCH), *pairs, BASE)


def read_pairs(text: str) -> tuple[Pair, ...]:
    """The pairs that a link names, each once; those that make no sense are left out."""
    found = [pair for part in text.split(",") if (pair := _read(part)) is not None]
    return tuple(dict.fromkeys(found))[:MOST]


def write_pairs(pairs: Sequence[Pair]) -> str:
    """The text that `read_pairs` reads back."""
    return ",".join(f"{pair.source}:{pair.schedule}:{pair.batch}" for pair in pairs)


def _read(part: str) -> Pair | None:
    source, _, rest = part.strip().partition(":")
    schedule, _, batch = rest.partition(":")
    known = {member.name for member in plannable_schedules()}
    if not source or schedule not in {"", *known} or not is_whole(batch):
        return None
    number = min(max(int(batch), 1), MOST_BATCH)
    return Pair(source, schedule, number if takes_batch(schedule) else 1)


def takes_batch(schedule: str) -> bool:
    """Whether the schedule, or one that a planner may choose, updates once per batch."""
    return not schedule or schedule_named(schedule).batched
