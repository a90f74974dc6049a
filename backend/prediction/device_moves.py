"""Which devices stages have, changed a little: devices that are alike are moved once."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations, count, islice, product, zip_longest

from backend.cluster.cluster import Cluster

IDLE = -1
FEW_STAGES = 6
"""Stages up to which a device may move to any other; of more to a neighbouring one."""
FEW_DEVICES = 8
"""Devices that are divided between two stages in every way; more by halves, or one is set apart."""
KEPT = 64
"""Stages' devices of which it is kept in which order the hosts are taken in turn."""
Devices = tuple[tuple[int, ...], ...]
"""Those of each stage."""


@dataclass(frozen=True)
class StageDevices:
    """Where the stages stand."""

    devices: Devices
    cluster: Cluster

    @cached_property
    def stage_of(self) -> list[int]:
        """Of each device."""
        found = [IDLE] * self.cluster.num_devices
        for stage, devices in enumerate(self.devices):
            for device in devices:
                found[device] = stage
        return found

    @cached_property
    def alike(self) -> dict[int, list[int]]:
        """Of each stage, and of the `IDLE` ones, devices that differ: in what they are, or in what
        stands beside them on some level."""
        stage_of, numbers = self.stage_of, defaultdict[object, int](count().__next__)
        kinds = [
            numbers[stage, each.speed, each.memory]
            for stage, each in zip(stage_of, self.cluster.each, strict=True)
        ]
        marks = kinds
        for size in self.cluster.sizes[1:-1]:
            groups = (kinds[start : start + size] for start in range(0, len(kinds), size))
            beside = [numbers[tuple(sorted(group))] for group in groups]
            marks = [numbers[mark, beside[at // size]] for at, mark in enumerate(marks)]
        firsts: dict[int, int] = {}
        for device, mark in enumerate(marks):
            firsts.setdefault(mark, device)
        found: dict[int, list[int]] = {}
        for device in firsts.values():
            found.setdefault(stage_of[device], []).append(device)
        return found

    def halves(self, devices: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """The devices of a stage in two, in each order, also with all that are idle; one device
        beside one that is idle."""
        idle = tuple(d for d, stage in enumerate(self.stage_of) if stage == IDLE)
        pools = (devices, tuple(sorted(devices + idle)))
        for every in dict.fromkeys((*pools, *(in_turn(pool, self.cluster) for pool in pools))):
            for size in _counts(len(every)):
                yield every[:size], every[size:]
        for one in self.alike.get(IDLE, []):
            yield devices, (one,)
            yield (one,), devices


def _counts(total: int) -> list[int]:
    """Into how many devices and the others a number of them is divided."""
    if total <= FEW_DEVICES:
        return list(range(1, total))
    return [1, total // 2, total - 1]


def moved_devices(devices: Devices, cluster: Cluster) -> Iterator[Devices]:
    """One device in another stage, out of use or newly in use, or as many again; two exchanged, or
    those of two stages; the replicas of a stage one further, so that they hand on to others."""
    alike = StageDevices(devices, cluster).alike
    for one, other in product(alike, range(IDLE, len(devices))):
        is_far = len(devices) > FEW_STAGES and IDLE not in (one, other) and abs(one - other) > 1
        if one == other or is_far or (one != IDLE and len(devices[one]) == 1):
            continue
        for device in alike[one]:
            yield _moved(devices, device, one, other)
    yield from _without_host(devices, cluster)
    yield from _copied(devices, cluster)
    for one, stage in enumerate(devices):
        if len(stage) > 1:
            yield (*devices[:one], (*stage[1:], stage[0]), *devices[one + 1 :])
    for one, other in combinations(range(len(devices)), 2):
        if len(devices) <= FEW_STAGES or other - one == 1:
            found = list(devices)
            found[one], found[other] = devices[other], devices[one]
            yield tuple(found)
    for one, other in combinations(sorted(alike), 2):
        for here, there in product(alike[one], alike[other]):
            if _differ(here, there, cluster):
                yield _exchanged(devices, here, there)


def _without_host(devices: Devices, cluster: Cluster) -> Iterator[Devices]:
    """No device of one host in use; of alike hosts with as many devices of each stage one."""
    gone: dict[int, list[int]] = {}
    for stage, numbers in enumerate(devices):
        for device in numbers:
            gone.setdefault(cluster.host_of(device), [0] * len(devices))[stage] += 1
    seen = set()
    for host, counts in gone.items():
        mark = (tuple(counts), None if cluster.is_uniform else host)
        if mark in seen or any(n == len(d) for n, d in zip(counts, devices, strict=True)):
            continue
        seen.add(mark)
        yield tuple(tuple(d for d in stage if cluster.host_of(d) != host) for stage in devices)


def _copied(devices: Devices, cluster: Cluster) -> Iterator[Devices]:
    """Each stage with as many idle devices as it has: one stage with more alone may be no faster,
    since the others are not."""
    used = {device for stage in devices for device in stage}
    idle = [device for device in range(cluster.num_devices) if device not in used]
    if len(used) <= len(idle):
        taken = iter(idle)
        yield tuple(tuple(sorted((*stage, *islice(taken, len(stage))))) for stage in devices)


def _moved(devices: Devices, device: int, one: int, other: int) -> Devices:
    found = list(devices)
    if one != IDLE:
        found[one] = tuple(each for each in found[one] if each != device)
    if other != IDLE:
        found[other] = tuple(sorted((*found[other], device)))
    return tuple(found)


def _exchanged(devices: Devices, here: int, there: int) -> Devices:
    other = {here: there, there: here}
    return tuple(tuple(other.get(each, each) for each in stage) for stage in devices)


def in_turn(devices: tuple[int, ...], cluster: Cluster) -> tuple[int, ...]:
    """One of each host after another, and that again."""
    return _in_turn(devices, cluster.levels[0].count)


@lru_cache(KEPT)
def _in_turn(devices: tuple[int, ...], host: int) -> tuple[int, ...]:
    """The same for hosts of so many devices: neighbours have most stages in common."""
    hosts: dict[int, list[int]] = {}
    for device in sorted(devices):
        hosts.setdefault(device // host, []).append(device)
    rounds = zip_longest(*hosts.values())
    return tuple(device for each in rounds for device in each if device is not None)


def _differ(here: int, there: int, cluster: Cluster) -> bool:
    """Whether it matters which of two devices is used."""
    one, other = cluster.at(here), cluster.at(there)
    is_near = cluster.host_of(here) == cluster.host_of(there)
    return not is_near or (one.speed, one.memory) != (other.speed, other.memory)
