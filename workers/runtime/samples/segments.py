"""How many microbatches an epoch has: whole rounds for replicas, pipelines and batches."""

import math
from collections.abc import Sequence

from backend.errors import InvalidInput
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from backend.runs.request.spec import TrainSpec
from workers.data.cutting import Cutting
from workers.data.split import DataSet


def round_size(rounds: Sequence[int], batch: int, num_pipelines: int) -> int:
    """Microbatches that the rounds of replicas, pipelines and batches share evenly."""
    return num_pipelines * math.lcm(*rounds, batch)


def is_counted(every: int, before: int, after: int) -> bool:
    """Does a multiple of `every` updates come after `before`, and at `after` at the latest? Where
    `every` is 0, none does."""
    return every > 0 and after // every > before // every


def evaluated_after(shape: Shape, epoch: int, every: int, most: int = 0) -> list[int]:
    """The microbatches of an epoch after which the held-out samples are evaluated: the rounds in
    which multiples of `every` updates of the run and update number `most` lie, and the end. `shape`
    is that of an epoch."""
    unit, total = _unit(shape), shape.num_microbatches
    stops = []
    for done in range(unit, total, unit) if every or most else ():
        before, after = (num_updates(shape, epoch, k) for k in (done - unit, done))
        if is_counted(every, before, after) or before < most <= after:
            stops.append(done)
    return [*stops, total]


def num_updates(shape: Shape, epoch: int, done: int) -> int:
    """The updates of a run after `done` microbatches of an epoch, whose `shape` it is."""
    return epoch * (shape.num_microbatches // shape.batch) + done // shape.batch


def _unit(shape: Shape) -> int:
    return round_size(shape.rounds, shape.batch, shape.num_pipelines)


def cutting_of(spec: TrainSpec) -> Cutting:
    """The microbatches that a run's plan trains on. A fallback's epochs are as long as those of the
    plan that it stands in for."""
    plan = spec.plan
    own = round_size(plan.partition.rounds, _batch(spec), plan.num_pipelines)
    unit = math.lcm(own, spec.round)
    return Cutting(plan.microbatch, unit, spec.data.last == "keep", spec.data.buckets)


def epoch_shape(spec: TrainSpec, data: DataSet, cutting: Cutting) -> Shape:
    """One epoch. Raises `InvalidInput` where the samples do not fill one round."""
    plan, microbatches = spec.plan, cutting.count(data.train)
    if microbatches == 0:
        raise InvalidInput(
            f"{data.num_train} training samples of {data.name} are fewer than one round of "
            f"{cutting.unit} microbatches of {plan.microbatch}",
            "Use smaller microbatches, fewer of them per batch, or more data.",
        )
    return plan.shape(microbatches, _batch(spec))


def _batch(spec: TrainSpec) -> int:
    """A schedule that updates by rounds of microbatches has batches of 1."""
    return spec.plan.batch if schedule(spec.plan.schedule).batched else 1
