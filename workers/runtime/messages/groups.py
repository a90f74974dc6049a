"""The groups of ranks that sum tensors: replicas of a stage, a pipeline, all pipelines."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from backend.pipeline.shape import RankCoordinates, Shape
from workers.runtime.messages.world import Group, World


@dataclass(frozen=True, slots=True)
class Groups:
    """Those that this rank is in.

    replicas  by the number of each stage that has several replicas
    pipeline  the ranks of its pipeline; None where it is one by itself
    peers     the ranks of all pipelines with its coordinates; None for a single pipeline
    channels  those of `replicas` once more, for what split layers exchange; none without them
    """

    world: World
    replicas: dict[int, Group]
    pipeline: Group | None
    peers: Group | None
    channels: dict[int, Group] = field(default_factory=dict)

    def pipeline_total(self, value: float) -> float:
        """The sum of `value` over the ranks of the pipeline; all of them call it."""
        if self.pipeline is None:
            return value
        tensor = torch.tensor([value], dtype=torch.float64, device=self.world.device)
        self.pipeline.sum(tensor)
        return float(tensor.item())

    def stage_total(self, stage: int, value: float) -> float:
        """The sum of `value` over the replicas of a stage where the plan splits layers; all of them
        call it. Elsewhere each has the whole stage: `value` itself."""
        group = self.channels.get(stage)
        if group is None:
            return value
        tensor = torch.tensor([value], dtype=torch.float64, device=self.world.device)
        group.sum(tensor)
        return float(tensor.item())

    def share(self, stage: int, tensors: Iterable[Tensor]) -> None:
        """Give the first replica's tensors of the stage to the others."""
        if group := self.replicas.get(stage):
            for tensor in tensors:
                group.broadcast(tensor)


def groups(world: World, shape: Shape, splits: bool = False) -> Groups:
    """Every rank calls it, and makes every group, as torch.distributed wants it. Where a plan
    `splits` layers, their exchanges have groups of their own: sums of gradients are under way at
    the same time, and begin at other times on each replica."""
    pipelines, size = range(shape.num_pipelines), shape.num_devices
    replicas, channels = _of_stages(world, shape), _of_stages(world, shape) if splits else {}
    if shape.num_pipelines == 1:
        return Groups(world, replicas, world.everybody if size > 1 else None, None, channels)
    pipeline = _own(
        world, [tuple(range(pipeline * size, (pipeline + 1) * size)) for pipeline in pipelines]
    )
    peers = _own(world, [shape.sharing(rank) for rank in range(size)])
    return Groups(world, replicas, pipeline, peers, channels)


def _of_stages(world: World, shape: Shape) -> dict[int, Group]:
    """The replicas of each stage of this rank that has several."""
    found = {}
    for stage in range(shape.num_stages):
        members = [shape.group_of(stage, pipeline) for pipeline in range(shape.num_pipelines)]
        if group := _own(world, members):
            found[stage] = group
    return found


def led_stages(coordinates: RankCoordinates) -> tuple[int, ...]:
    """The stages of which this rank is the first replica of its pipeline."""
    shape = coordinates.shape
    return tuple(
        s
        for s in coordinates.stages
        if shape.group_of(s, coordinates.pipeline)[0] == coordinates.rank
    )


def is_reporter(coordinates: RankCoordinates) -> bool:
    """The first replica of the last stage speaks for the run: it knows the loss."""
    return coordinates.rank == coordinates.shape.group_of(coordinates.shape.num_stages - 1)[0]


def _own(world: World, members: Sequence[tuple[int, ...]]) -> Group | None:
    """Make every group of several ranks; the one that this rank is in."""
    own = None
    for ranks in members:
        if len(ranks) > 1:
            group = world.group(ranks)
            own = group if world.rank in ranks else own
    return own
