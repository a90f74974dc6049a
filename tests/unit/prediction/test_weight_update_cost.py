"""How many gradients an update applies, and when it leaves the old weights standing."""

import pytest

from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from backend.prediction.weight_update_cost import WeightUpdateCost, weight_update_costs


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("1f1b-flush", (WeightUpdateCost(8), WeightUpdateCost(8))),
        ("2bw", (WeightUpdateCost(8, renews=True), WeightUpdateCost(8, renews=True))),
        ("pipedream", (WeightUpdateCost(renews=True), WeightUpdateCost())),
        ("pipedream-naive", (WeightUpdateCost(), WeightUpdateCost())),
    ],
)
def test_a_schedule_says_what_its_updates_apply(
    name: str, expected: tuple[WeightUpdateCost, ...]
) -> None:
    rule = schedule(name)
    shape = Shape((1, 1), 32, 8 if rule.batched else 1)
    assert weight_update_costs(rule, shape) == expected


def test_replicas_share_a_batch_and_copy_all_their_gradients() -> None:
    first, last = weight_update_costs(schedule("1f1b-flush"), Shape((2, 1), 32, 8))
    assert (first, last) == (WeightUpdateCost(4, 2), WeightUpdateCost(8))
    assert (first.added, last.added) == (1.0, 7 / 8)


def test_one_gradient_is_no_sum() -> None:
    assert (WeightUpdateCost().added, WeightUpdateCost().is_mean) == (0.0, False)
