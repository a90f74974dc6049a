"""An epoch is whole rounds of what replicas, pipelines and batches share."""

import pytest
import torch

from backend.errors import InvalidInput
from backend.pipeline.shape import Shape
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.request.spec import TrainSpec
from workers.data.split import DataSet, TensorSplit
from workers.runtime.samples.segments import (
    cutting_of,
    epoch_shape,
    evaluated_after,
    round_size,
)


def spec(schedule: str, batch: int, num_pipelines: int = 1) -> TrainSpec:
    stages = (Stage(0, 1, (0, 1)), Stage(1, 2, (2,)))
    return TrainSpec(
        1, Plan("p", Partition(stages), schedule, 4, batch=batch, num_pipelines=num_pipelines)
    )


def data(count: int) -> DataSet:
    return DataSet(TensorSplit(torch.zeros(count), torch.zeros(count)), None, "zeros")


@pytest.mark.parametrize(
    ("replicas", "batch", "num_pipelines", "size"),
    [((1,), 1, 1, 1), ((2, 3), 1, 1, 6), ((2, 1), 4, 1, 4), ((2, 1), 3, 2, 12)],
)
def test_a_round_is_shared_evenly(replicas, batch: int, num_pipelines: int, size: int) -> None:
    assert round_size(replicas, batch, num_pipelines) == size


@pytest.mark.parametrize(("schedule", "unit"), [("1f1b-flush", 6), ("pipedream", 2)])
def test_a_schedule_that_updates_by_rounds_has_batches_of_1(schedule: str, unit: int) -> None:
    given = spec(schedule, 3)
    cutting = cutting_of(given)
    assert cutting.unit == unit
    shape = epoch_shape(given, data(4 * 13), cutting)
    assert (shape.num_microbatches, shape.batch) == (12, 3 if unit == 6 else 1)


def test_fewer_samples_than_a_round_are_refused() -> None:
    given = spec("1f1b-flush", 3)
    with pytest.raises(InvalidInput, match="23 training samples of zeros are fewer than one round"):
        epoch_shape(given, data(23), cutting_of(given))


@pytest.mark.parametrize(
    ("every", "epoch", "stops"),
    [
        (0, 0, [12]),
        (2, 0, [4, 8, 12]),
        (2, 1, [4, 8, 12]),
        (1, 0, [2, 4, 6, 8, 10, 12]),
        (100, 0, [12]),
        (7, 1, [2, 12]),
    ],
)
def test_evaluations_count_the_updates_of_the_run(every: int, epoch: int, stops) -> None:
    """Batches of 2 microbatches: epoch 0 has updates 1 to 6, epoch 1 has 7 to 12."""
    assert evaluated_after(Shape((1, 1), 12, 2), epoch, every) == stops


def test_evaluations_wait_for_whole_rounds() -> None:
    """Three replicas and batches of 2: a round has 6 microbatches and 3 updates."""
    assert evaluated_after(Shape((3, 1), 24, 2), 0, 4) == [12, 18, 24]


def test_the_last_update_that_is_asked_for_is_evaluated() -> None:
    shape = Shape((1, 1), 12, 2)
    assert evaluated_after(shape, 0, 0, most=5) == [10, 12]
    assert evaluated_after(shape, 1, 4, most=9) == [4, 6, 12]
    assert evaluated_after(shape, 2, 0, most=9) == [12]
    assert evaluated_after(Shape((3, 1), 24, 2), 0, 0, most=4) == [12, 24]
