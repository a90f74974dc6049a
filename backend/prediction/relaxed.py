"""What a limit of a question costs: the same planner's plan where there is no such limit."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from backend.planning.savings import MemorySaving
from backend.prediction.prediction import Prediction
from backend.prediction.question import PLANNER_NAMES, Question
from backend.units import bytes_text

SOLD = (8, 12, 16, 24, 32, 40, 48, 64, 80, 96, 128, 141, 180, 192, 256, 288)
"""GB of memory that accelerators are sold with."""
GB = 1e9
AMPLE = 2.0**62  # bytes
WORTH = 1.01
"""A plan that is less than so many times as fast is not worth a word."""


@dataclass(frozen=True, slots=True)
class Relaxed:
    """A faster plan. `memory`: bytes of a device with which it fits; None where the devices stay
    as they are and memory is saved where a plan does not fit."""

    memory: float | None
    prediction: Prediction
    times: float

    @property
    def where(self) -> str:
        """As "With 29.8 GiB per device (sold as 32 GB)"."""
        if self.memory is None:
            return "With recomputation and sharded state where memory requires them"
        return f"With {bytes_text(self.memory)} per device (sold as {self.memory / GB:g} GB)"


def without_limits(question: Question, found: Prediction) -> Iterator[Question]:
    """The question of the planner that `found` it, without each of its limits: memory that devices
    have, and ways to save it that are not allowed."""
    planner = found.plan.planner
    if planner not in PLANNER_NAMES or all(
        device.memory is None for device in question.cluster.each
    ):
        return
    same = replace(question, planner=planner)
    yield same.with_memory(AMPLE)
    if MemorySaving.NEVER in (question.recompute, question.shard_state):
        yield replace(same, recompute=MemorySaving.AUTO, shard_state=MemorySaving.AUTO)


def relaxed(freed: Question, free: Prediction, found: Prediction) -> Relaxed | None:
    """What `free`, the answer to a question `without_limits`, is beside what was `found`; None
    where it is hardly faster, or needs more memory than devices have."""
    times = free.samples_per_second / found.samples_per_second if found.samples_per_second else 0.0
    if times < WORTH:
        return None
    if freed.cluster.device.memory != AMPLE:
        return Relaxed(None, free, times)
    least = max(free.memory_bytes)
    memory = next((size * GB for size in SOLD if size * GB >= least), None)
    return Relaxed(memory, free, times) if memory else None
