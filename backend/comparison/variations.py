"""What if: the same model on other clusters, one thing changed at a time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from math import inf

from backend.cluster.cluster import Cluster, Device
from backend.errors import InvalidInput
from backend.planning.plan import Plan
from backend.prediction.answer import Answer
from backend.prediction.imagined import peak_of
from backend.profiles.devices import DEVICES, Peak, Precision, find
from backend.profiles.profile import Profile
from backend.profiles.transfer import carried

MOST_DEVICES = 256
FACTORS = (1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 8.0)
BATCHES = (1, 2, 4, 8, 16, 32, 64)
GB = 1e9


class Axis(StrEnum):
    """What is changed."""

    DEVICES = "devices"
    DEVICE = "device type"
    BANDWIDTH = "link bandwidth"
    BATCH = "microbatches per update"


@dataclass(frozen=True, slots=True)
class Prices:
    """Money per device and hour, in the user's currency: `usual`, and those of some types."""

    usual: float
    apart: Mapping[str, float] = field(default_factory=dict)

    def of(self, device: Device) -> float:
        """The price of this device: of its type, else as the cluster says."""
        own = self.usual if device.price is None else device.price
        return self.apart.get(device.name.casefold(), own)


def read_prices(usual: float, text: str) -> Prices:
    """`text` is such as "H100 4.50, T4 0.35". Raises `InvalidInput`."""
    apart = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, price = part.rpartition(" ")
        try:
            apart[name.strip().casefold()] = _price(price)
        except ValueError:
            raise InvalidInput(
                f"the price {part[:40]!r} cannot be read",
                "Write the type, a space and a price above 0, such as: H100 4.50, T4 0.35",
            ) from None
    return Prices(usual, apart)


def _price(text: str) -> float:
    price = float(text)
    if not 0 <= price < inf:
        raise ValueError(text)
    return price


@dataclass(frozen=True, slots=True)
class Variation:
    """One point of a curve: `value` on the axis (`label` for people), and the question.
    `peaks`: those of the device that the profile's times are of and of the one asked about."""

    axis: Axis
    value: float
    label: str
    cluster: Cluster
    batch: int
    is_base: bool
    peaks: tuple[Peak, Peak] | None = None

    def profile(self, profile: Profile) -> Profile:
        """`profile` as this variation's devices would run it."""
        return carried(profile, *self.peaks) if self.peaks else profile


@dataclass(frozen=True, slots=True)
class Point:
    """The best plan there; None where none fits, and then `reason` says why."""

    variation: Variation
    best: Answer | None
    reason: str = ""

    @property
    def plan(self) -> Plan | None:
        return self.best.prediction.plan if self.best else None

    @property
    def samples_per_second(self) -> float | None:
        return self.best.prediction.samples_per_second if self.best else None

    def cost_per_million(self, prices: Prices) -> float | None:
        """Money per million samples, idle devices included."""
        speed, cluster = self.samples_per_second, self.variation.cluster
        if not speed:
            return None
        return prices.of(cluster.device) * cluster.num_devices / 3600 / speed * 1e6


def variations(
    cluster: Cluster, batch: int, *, flushes: bool, precision: Precision = Precision.FLOAT32
) -> tuple[Variation, ...]:
    """Every point of every curve; each curve goes through the cluster as it is. Batches are
    varied only where the schedule has them; types of device are compared in `precision`."""
    types = _types(cluster, batch, precision)
    found = [*_devices(cluster, batch), *types, *_bandwidths(cluster, batch)]
    return (*found, *(_batches(cluster, batch) if flushes else ()))


def changes(points: list[Point]) -> list[tuple[Point, Point]]:
    """Neighbours between which the best plan is another."""
    known = [point for point in points if point.plan is not None]
    return [(a, b) for a, b in pairwise(known) if plan_word(a) != plan_word(b)]


def plan_word(point: Point) -> str:
    """The best plan in a word, independent of how many replicas its stages have: what counts
    as the same plan when the number of devices changes is the form, "n-1"."""
    if point.plan is None:
        return "none fits"
    if point.variation.axis is not Axis.DEVICES:
        return point.plan.partition.label
    return "-".join("n" if count > 1 else "1" for count in point.plan.partition.replicas)


def _devices(cluster: Cluster, batch: int) -> Iterator[Variation]:
    outer = cluster.levels[-1]
    inner = cluster.num_devices // outer.count
    counts = {outer.count, *(2**power for power in range(9))}
    if cluster.devices:
        counts = {outer.count}
    for count in sorted(counts):
        if count * inner > MOST_DEVICES or count > 8 * max(outer.count, 2):
            continue
        level = replace(outer, count=count)
        changed = replace(cluster, levels=(*cluster.levels[:-1], level))
        number = count * inner
        yield Variation(
            Axis.DEVICES,
            number,
            f"{number} device{'s' if number > 1 else ''}",
            changed,
            batch,
            count == outer.count,
        )


def _types(cluster: Cluster, batch: int, precision: Precision) -> Iterator[Variation]:
    """Other types that compute in `precision` where this one does, as `transfer` carries the
    profile to them, else the same a few times faster."""
    now, found = cluster.device, find(cluster.device.name)
    here = peak_of(now, precision)
    if here is None:
        for factor in FACTORS:
            device = replace(now, name=f"{factor:g}× {now.name}", speed=now.speed * factor)
            yield _typed(cluster, batch, factor, device, factor == 1.0)
        return
    if found is None:
        yield _typed(cluster, batch, 1.0, now, is_base=True)
    for row in sorted(DEVICES.values(), key=lambda row: (row.flops.get(precision, 0), row.memory)):
        if found and row is found[0]:
            yield _typed(cluster, batch, 1.0, now, is_base=True)
        elif precision in row.flops:
            there = row.peak(precision)
            device = Device(row.title, row.memory, now.speed)
            base = _typed(cluster, batch, there.flops / here.flops, device, is_base=False)
            yield replace(base, peaks=(here, there))


def _typed(cluster: Cluster, batch: int, factor: float, device: Device, is_base: bool) -> Variation:
    changed = replace(cluster, device=device, devices=()) if not is_base else cluster
    return Variation(Axis.DEVICE, factor, device.name, changed, batch, is_base)


def _bandwidths(cluster: Cluster, batch: int) -> Iterator[Variation]:
    outer = cluster.levels[-1]
    for factor in FACTORS:
        level = replace(outer, bandwidth=outer.bandwidth * factor)
        changed = replace(cluster, levels=(*cluster.levels[:-1], level))
        value = level.bandwidth / GB
        yield Variation(Axis.BANDWIDTH, value, f"{value:.3g} GB/s", changed, batch, factor == 1.0)


def _batches(cluster: Cluster, batch: int) -> Iterator[Variation]:
    for number in sorted({*BATCHES, batch}):
        label = f"{number} microbatch{'es' if number > 1 else ''}"
        yield Variation(Axis.BATCH, number, label, cluster, number, number == batch)
