"""The machines a plan is made for: devices on levels of links, innermost level first."""

from dataclasses import dataclass
from math import prod

from backend.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Device:
    """One accelerator. `memory` in bytes (None = not known, so not checked); `speed`
    relative to the device on which profiles are taken (2.0 halves every compute time)."""

    name: str = "cpu"
    memory: float | None = None
    speed: float = 1.0


@dataclass(frozen=True, slots=True)
class Level:
    """`count` members joined by links of `bandwidth` bytes/s and `latency` seconds.
    A member is a device at the innermost level and a whole inner level above it."""

    count: int
    bandwidth: float
    latency: float = 0.0


@dataclass(frozen=True, slots=True)
class Cluster:
    """Levels innermost first: ((4, 12e9), (4, 1.25e9)) is 4 servers of 4 devices.
    Devices are numbered through, server by server. Raises `InvalidInput`."""

    levels: tuple[Level, ...]
    device: Device = Device()

    def __post_init__(self) -> None:
        if not self.levels:
            raise InvalidInput("cluster: levels is empty", "Give at least one level of devices.")
        for number, level in enumerate(self.levels, start=1):
            if level.count < 1 or level.bandwidth <= 0 or level.latency < 0:
                raise InvalidInput(
                    f"cluster: level {number} has count {level.count}, "
                    f"bandwidth {level.bandwidth:g}, latency {level.latency:g}",
                    "count must be 1 or more, bandwidth above 0, latency 0 or more.",
                )
        if self.device.speed <= 0:
            raise InvalidInput(
                f"cluster: device speed {self.device.speed:g} is not above 0",
                "1.0 is as fast as the profiled device, 2.0 twice as fast.",
            )

    @property
    def num_devices(self) -> int:
        return prod(level.count for level in self.levels)

    def link(self, a: int, b: int) -> Level:
        """The level whose link joins devices `a` and `b` (the innermost that holds both)."""
        size = 1
        for level in self.levels:
            size *= level.count
            if a // size == b // size:
                return level
        raise InvalidInput(
            f"devices {a} and {b} are not both in this {self.num_devices}-device cluster"
        )
