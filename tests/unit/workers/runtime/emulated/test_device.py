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


def busy(
    late: list[float], actions: list[list[float]], scale: float = 1.0, python: float = 0.0
) -> float:
    """When a device that wakes so late has done with these waits of each action, behind each of
    which Python takes some time; an action of a message, which waits for nothing, ends each."""
    clock = Clock(late)
    with patch.object(device, "time", clock):
        found = EmulatedDevice(scale)
        for waits in actions:
            found.begin()
            for seconds in waits:
                found.busy(seconds)
                clock.now += python
            found.begin()
    return clock.now


def test_it_waits_by_its_scale() -> None:
    assert busy([0.0, 0.0], [[1.0, 2.0]], scale=3.0) == 9.0


def test_a_late_wake_up_is_made_up_for() -> None:
    assert busy([0.5, 0.0], [[1.0, 1.0]]) == 2.0
    assert busy([0.5, 0.0], [[1.0], [1.0]]) == 2.0


def test_more_than_a_whole_wait_too_late() -> None:
    assert busy([2.5, 0.0], [[1.0, 1.0, 1.0, 1.0]]) == 4.0
    assert busy([2.5, 0.0], [[1.0], [1.0], [1.0], [1.0]]) == 4.0


def test_what_python_does_between_layers_is_part_of_the_wait() -> None:
    """But what it does behind the last one, and more than the waits."""
    assert busy([0.0] * 4, [[1.0] * 4], python=0.25) == 4.25
    assert busy([0.0], [[1.0] * 4], python=2.0) == 9.0


def test_what_python_takes_longer_in_an_action_is_not_made_up_for_in_the_next() -> None:
    assert busy([0.0, 0.0], [[1.0, 0.5], [4.0]], python=2.0) == 11.0


def test_time_that_passes_between_actions_is_not_made_up_for() -> None:
    clock = Clock([0.5, 0.0])
    with patch.object(device, "time", clock):
        found = EmulatedDevice(1.0)
        found.begin()
        found.busy(1.0)
        found.begin()  # a receive
        clock.now += 10.0
        found.begin()
        found.busy(1.0)
    assert clock.now == 12.0
