"""Plans that differ little from one another: what a search tries once it has its best candidates.

Candidates come from a cost model in which all-reduces overlap with compute and links carry one
direction at a time. The simulator knows better, so a border may want to move by a layer, or a
device to the next stage.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from backend.planning.plan import Partition, Plan, Stage


def nearby(plan: Plan, num_devices: int) -> Iterator[Plan]:
    """`plan` with one border a layer further, one device in a neighbouring stage, or one idle
    device in use; none where stages share devices."""
    partition = plan.partition
    if partition.chunks > 1 or plan.num_pipelines > 1:
        return
    for stages in (*_moved_borders(partition.stages), *_moved_devices(partition, num_devices)):
        yield replace(plan, partition=replace(partition, stages=stages))


def _moved_borders(stages: tuple[Stage, ...]) -> Iterator[tuple[Stage, ...]]:
    for place, (one, other) in enumerate(pairwise(stages)):
        for border in (one.stop - 1, one.stop + 1):
            if one.first < border < other.stop:
                pair = replace(one, stop=border), replace(other, first=border)
                yield (*stages[:place], *pair, *stages[place + 2 :])


def _moved_devices(partition: Partition, num_devices: int) -> Iterator[tuple[Stage, ...]]:
    stages = partition.stages
    for place, (one, other) in enumerate(pairwise(stages)):
        given = (
            (one.devices[:-1], (one.devices[-1], *other.devices)),
            ((*one.devices, other.devices[0]), other.devices[1:]),
        )
        for here, there in given:
            if here and there:
                pair = replace(one, devices=here), replace(other, devices=there)
                yield (*stages[:place], *pair, *stages[place + 2 :])
    used = {device for stage in stages for device in stage.devices}
    idle = next((device for device in range(num_devices) if device not in used), None)
    if idle is not None:
        for place, stage in enumerate(stages):
            wider = replace(stage, devices=(*stage.devices, idle))
            yield (*stages[:place], wider, *stages[place + 1 :])
