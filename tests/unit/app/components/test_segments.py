"""Which epoch a live page shows."""

from app.components.run.measured_view import STEADY, steady


def test_a_new_epoch_waits_until_the_last_was_seen() -> None:
    first = steady(0, None, 100.0)
    assert first == (0, 100.0)
    assert steady(3, first, 100.0 + STEADY / 2) == first
    second = steady(4, first, 100.0 + 2 * STEADY)
    assert second == (4, 100.0 + 2 * STEADY)
    assert steady(5, second, second[1] + 1) == second


def test_an_epoch_that_stays_the_newest_counts_from_its_first_sight() -> None:
    first = steady(0, None, 100.0)
    assert steady(0, first, 100.0 + 5 * STEADY) == first
    assert steady(1, first, 100.0 + 5 * STEADY)[0] == 1
