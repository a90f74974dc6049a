"""A pipeline of equal stages, costed by hand: what `stageflow simulate` asks about."""

from collections import defaultdict
from dataclasses import dataclass

from backend.pipeline.actions import (
    Backward,
    BackwardInput,
    BackwardWeight,
    Collective,
    Compute,
    Forward,
    Message,
    Recompute,
    Recv,
    Send,
    Step,
)
from backend.pipeline.lower import lower
from backend.pipeline.program import Program
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from backend.pipeline.shape_checks import check_size
from backend.pipeline.simulate import simulate
from backend.pipeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class UniformDurations:
    """The same seconds on every pipeline rank: `backward` is the input's gradient,
    `backward_weight` the weights'; a full backward takes both. Chunks share them evenly.
    Updates and reductions are free."""

    forward: float
    backward: float
    backward_weight: float = 0.0
    transfer_seconds: float = 0.0
    chunks: int = 1

    def compute(self, rank: int, action: Compute) -> float:
        return self._seconds_of(action) / self.chunks

    def _seconds_of(self, action: Compute) -> float:
        match action:
            case Forward() | Recompute():
                return self.forward
            case Backward():
                return self.backward + self.backward_weight
            case BackwardInput():
                return self.backward
            case BackwardWeight():
                return self.backward_weight
            case Step():
                return 0.0

    def transfer(self, message: Message, source: int, to: int) -> float:
        return self.transfer_seconds

    def collective(self, action: Collective) -> float:
        return 0.0

    @property
    def microbatch_seconds(self) -> float:
        """F + B + W."""
        return self.forward + self.backward + self.backward_weight


def uniform_shape(
    name: str,
    pipeline_size: int,
    num_microbatches: int,
    chunks: int = 0,
    advance: int = 1,
    run_ahead: int = 0,
) -> Shape:
    """A straight pipeline: one batch of `num_microbatches` where it flushes; else updates as
    often as `name` allows (after every microbatch; with 2bw after as many as pipeline ranks, where
    these divide the microbatches, or as it runs ahead). 0 chunks are as many as it is made for.
    Raises `InvalidInput`."""
    member = schedule(name)
    chunks = chunks or member.usual_chunks
    check_size(pipeline_size * chunks, num_microbatches)
    batch = num_microbatches if member.batched else 1
    straight = (1,) * pipeline_size
    if member.batched and not member.flushes:
        least = member.least_batch(straight, run_ahead)
        batch = least if num_microbatches % least == 0 else batch
    return Shape(
        straight,
        num_microbatches,
        batch,
        chunks,
        advance,
        run_ahead=run_ahead,
        placement=member.placement_of(chunks),
    )


def simulate_uniform(
    name: str, shape: Shape, durations: UniformDurations
) -> tuple[Program, Timeline]:
    """The program of `shape`, and its timeline. Raises `InvalidInput`."""
    program = lower(schedule(name), shape)
    return program, simulate(program, durations)


def bubble_rate(timeline: Timeline, busy: float) -> float:
    """(cost - busy) / cost, where the cost is the longest over ranks of last end - first start
    and `busy` = m (F + B + W) (Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024)."""
    cost = cost_seconds(timeline)
    return (cost - busy) / cost if cost else 0.0


def cost_seconds(timeline: Timeline) -> float:
    """The longest over ranks of (last end - first start), messages not counted."""
    spans: defaultdict[int, list[float]] = defaultdict(list)
    for span in timeline.spans:
        if not isinstance(span.action, Send | Recv | Collective):
            spans[span.rank] += [span.start, span.end]
    return max((max(times) - min(times) for times in spans.values()), default=0.0)
