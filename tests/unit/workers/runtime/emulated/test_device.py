"""A device that waits: what one wait is too long, the next is shorter."""

from unittest.mock import patch

from workers.runtime.emulated import device
from workers.runtime.emulated.device import EmulatedDevice


class Clock:
    """Time that passes when somebody sleeps, a little more than was asked for."""

    def __init__(self, late: list[float]) -> None:
        self.now, self._late = 0.0, late

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds + self._late.pop(0)


def busy(late: list[float], waits: list[float], scale: float = 1.0) -> float:
    """When a device that wakes so late has done with these waits."""
    clock, found = Clock(late), EmulatedDevice(scale)
    with patch.object(device, "time", clock):
        for seconds in waits:
            found.busy(seconds)
    return clock.now


def test_it_waits_by_its_scale() -> None:
    assert busy([0.0, 0.0], [1.0, 2.0], scale=3.0) == 9.0


def test_a_late_wake_up_is_made_up_for() -> None:
    assert busy([0.5, 0.0], [1.0, 1.0]) == 2.0


def test_more_than_a_whole_wait_too_late() -> None:
    assert busy([2.5, 0.0], [1.0, 1.0, 1.0, 1.0]) == 4.0
