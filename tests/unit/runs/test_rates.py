"""How fast an attempt went."""

from datetime import UTC, datetime

import pytest

from backend.runs.history.rates import updates_per_second
from backend.runs.history.records import MetricPoint, StoredAttempt


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def test_its_own_losses_alone_count():
    losses = [MetricPoint(n, 0, 1.0, 10.0 + n) for n in range(10)]
    losses += [MetricPoint(n, 0, 1.0, 100.0 + 4 * n) for n in range(10, 20)]
    first = StoredAttempt(1, "a", moment(5), moment(60), "restarted", None, 1, None)
    second = StoredAttempt(2, "a", moment(70), None, None, None, 1, 10)
    assert updates_per_second(first, losses) == pytest.approx(1.0)
    assert updates_per_second(second, losses) == pytest.approx(0.25)
    third = StoredAttempt(3, "a", moment(900), None, None, None, 1, 20)
    assert updates_per_second(third, losses) is None
