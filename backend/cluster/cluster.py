"""The machines a plan is made for: devices on levels of links, innermost level first."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from math import isfinite, prod
from operator import mul

from backend.cluster.device_record import UNKNOWN, DeviceRecord
from backend.errors import InvalidInput

MOST_DEVICES = 16_384


@dataclass(frozen=True, slots=True)
class Device:
    """One accelerator. `memory` in bytes (None = not known, so not checked); `speed`
    relative to the device on which profiles are taken (2.0 halves every compute time). It draws
    `watts` while it computes and `idle_watts` while it waits (None = not known). `record`: what
    its data sheet says; `price`: money per hour (None = not known)."""

    name: str = "cpu"
    memory: float | None = None
    speed: float = 1.0
    watts: float | None = None
    idle_watts: float | None = None
    record: DeviceRecord = UNKNOWN
    price: float | None = None


@dataclass(frozen=True, slots=True)
class Level:
    """`count` members joined by links of `bandwidth` bytes/s and `latency` seconds.
    A member is a device at the innermost level and a whole inner level above it. `cores`, at
    the innermost level: the processor cores on which the `count` devices of a host take turns
    (None = each computes on its own). `sites`, at the outermost: its members are sites, which
    slow links join."""

    count: int
    bandwidth: float
    latency: float = 0.0
    cores: int | None = None
    sites: bool = False


@dataclass(frozen=True)
class Cluster:
    """Levels innermost first: ((4, 12e9), (4, 1.25e9)) is 4 servers of 4 devices.
    Devices are numbered through, server by server. They all are like `device`, or `devices`
    names each of them. Raises `InvalidInput`."""

    levels: tuple[Level, ...]
    device: Device = Device()
    devices: tuple[Device, ...] = ()

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
        if self.num_devices > MOST_DEVICES:
            raise InvalidInput(
                f"cluster: the levels hold more than {MOST_DEVICES:,} devices",
                "Give only the part that one run uses.",
            )
        if self.levels[0].cores == 0 or any(level.cores is not None for level in self.levels[1:]):
            raise InvalidInput(
                "cluster: cores are 0, or not those of the innermost level",
                "Give the innermost level, which is a host, 1 core or more.",
            )
        if any(level.sites for level in (*self.levels[:-1], *self.levels[:1])):
            raise InvalidInput(
                "cluster: sites are not the members of the outermost of several levels",
                "Say sites of the last level alone, above that of a site's own devices.",
            )
        if self.devices and len(self.devices) != self.num_devices:
            raise InvalidInput(
                f"cluster: {len(self.devices)} devices are listed, the levels hold "
                f"{self.num_devices}",
                "List every device, server by server, or give one that stands for all.",
            )
        for device in self.devices or (self.device,):
            if device.speed <= 0:
                raise InvalidInput(
                    f"cluster: device speed {device.speed:g} is not above 0",
                    "1.0 is as fast as the profiled device, 2.0 twice as fast.",
                )
            if device.memory is not None and device.memory <= 0:
                raise InvalidInput(
                    f"cluster: device memory {device.memory:g} is not above 0",
                    "Give its bytes, such as 16e9, or leave it out where it is not known.",
                )
            if device.price is not None and device.price < 0:
                raise InvalidInput(
                    f"cluster: device price {device.price:g} is below 0",
                    "Give money per device and hour, or leave it out.",
                )
            if device.watts is not None and not 0 < device.watts >= (device.idle_watts or 0):
                raise InvalidInput(
                    f"cluster: a device draws {device.watts:g} W at work and "
                    f"{device.idle_watts or 0:g} W while it waits",
                    "watts are above 0, and at least idle_watts.",
                )

    @property
    def num_devices(self) -> int:
        return prod(level.count for level in self.levels)

    @property
    def num_sites(self) -> int:
        """1 where no level says that its members are sites."""
        return self.levels[-1].count if self.levels[-1].sites else 1

    @property
    def site(self) -> "Cluster":
        """The first site. Raises `InvalidInput` where there is none, or others are not like it."""
        if self.num_sites == 1:
            raise InvalidInput(
                "the cluster has no sites",
                "Say which they are: sites: true at the last of its levels, of 2 members or more.",
            )
        size = self.num_devices // self.num_sites
        found = [(device.speed, device.memory) for device in self.each]
        if found != found[:size] * self.num_sites:
            raise InvalidInput(
                "the sites of the cluster have devices of other speeds or memories",
                "Plan for sites that are alike: leave devices out of the larger ones.",
            )
        return Cluster(self.levels[:-1], self.device, self.devices[:size])

    @property
    def each(self) -> tuple[Device, ...]:
        """Every device, by number."""
        return self.devices or (self.device,) * self.num_devices

    @property
    def is_uniform(self) -> bool:
        """Whether all devices have the same speed and memory."""
        return len({(device.speed, device.memory) for device in self.devices}) <= 1

    @property
    def device_names(self) -> str:
        """The types of its devices: "V100 and A100"."""
        return " and ".join(dict.fromkeys(device.name for device in self.each))

    @property
    def speed(self) -> float:
        """Of all devices together, in profiled devices."""
        return sum(device.speed for device in self.each)

    @property
    def speed_at_once(self) -> float:
        """Of the devices that compute at the same time: where those of a host take turns on fewer
        cores, of as many as it has cores, the fastest."""
        host, speeds = self.levels[0], [device.speed for device in self.each]
        parts = (speeds[at : at + host.count] for at in range(0, len(speeds), host.count))
        return sum(sum(sorted(part)[-(host.cores or host.count) :]) for part in parts)

    def host_of(self, number: int) -> int:
        """The host of a device: a member of the innermost level."""
        return number // self.levels[0].count

    def at(self, number: int) -> Device:
        return self.devices[number] if self.devices else self.device

    def speeds(self, numbers: Collection[int]) -> set[float]:
        """Those that these devices have."""
        if not self.devices:
            return {self.device.speed}
        return {self.devices[number].speed for number in numbers}

    def speed_of(self, numbers: Collection[int]) -> float:
        """That of these devices together."""
        if not self.devices:
            return len(numbers) * self.device.speed
        return sum(self.devices[number].speed for number in numbers)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Devices in one member of each level and, last, in the whole: (1, 4, 16)."""
        return tuple(accumulate((level.count for level in self.levels), mul, initial=1))

    @cached_property
    def slowest(self) -> tuple[float, ...]:
        """Bandwidth of the slowest link among the levels up to each, innermost first."""
        return tuple(accumulate((level.bandwidth for level in self.levels), min))

    def span(self, devices: Iterable[int]) -> int:
        """Number of levels that the links between `devices` climb; 0 for one device."""
        numbers = tuple(devices)
        low, high = min(numbers), max(numbers)
        return next(n for n, size in enumerate(self.sizes) if low // size == high // size)

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


def limited(cluster: Cluster, memory: float | None) -> Cluster:
    """The same with devices of so many bytes; as it is where None is given. Raises
    `InvalidInput`."""
    if memory is None:
        return cluster
    if not isfinite(memory) or memory < 1:
        raise InvalidInput(f"memory {memory} is not a number of bytes", "Give one such as 16e9.")
    each = tuple(replace(device, memory=memory) for device in cluster.devices)
    return replace(cluster, device=replace(cluster.device, memory=memory), devices=each)
