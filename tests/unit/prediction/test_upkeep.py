"""How many gradients an update applies, and when it leaves the old weights standing."""

import pytest

from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from backend.prediction.upkeep import Upkeep, upkeep


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("1f1b-flush", (Upkeep(8), Upkeep(8))),
        ("2bw", (Upkeep(8, renews=True), Upkeep(8, renews=True))),
        ("pipedream", (Upkeep(renews=True), Upkeep())),
        ("pipedream-naive", (Upkeep(), Upkeep())),
    ],
)
def test_a_schedule_says_what_its_updates_apply(name: str, expected: tuple[Upkeep, ...]) -> None:
    rule = schedule(name)
    shape = Shape((1, 1), 32, 8 if rule.batched else 1)
    assert upkeep(rule, shape) == expected


def test_replicas_share_a_batch_and_copy_all_their_gradients() -> None:
    first, last = upkeep(schedule("1f1b-flush"), Shape((2, 1), 32, 8))
    assert (first, last) == (Upkeep(4, 2), Upkeep(8))
    assert (first.added, last.added) == (1.0, 7 / 8)


def test_one_gradient_is_no_sum() -> None:
    assert (Upkeep().added, Upkeep().is_mean) == (0.0, False)
