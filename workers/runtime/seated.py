"""What the rank on a seat holds for the whole run: its stages, their weights, their groups."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from backend.errors import InvalidInput
from backend.pipeline.shape import Seat, Shape
from backend.planning.plan import Partition
from backend.runs.spec import OptimizerSpec
from workers.definitions.cut import cut
from workers.definitions.errors import ModelRaised, describe, user_traceback
from workers.definitions.layers import LayeredModel
from workers.definitions.loader import Definition
from workers.runtime.mail import Mail
from workers.runtime.optimizers import rule
from workers.runtime.reporter import is_out_of_memory
from workers.runtime.stage import Stage, Tensors
from workers.runtime.transport import transport
from workers.runtime.weights import Weights
from workers.runtime.world import Group, World


@dataclass(frozen=True, slots=True)
class Seated:
    """`stages`, `weights` and `groups` by stage number; a stage without replicas has no group.
    `layers` are each stage's (first, stop)."""

    world: World
    seat: Seat
    definition: Definition
    layered: LayeredModel
    layers: tuple[tuple[int, int], ...]
    stages: dict[int, Stage]
    weights: dict[int, Weights]
    groups: dict[int, Group]
    mail: Mail

    @property
    def is_reporter(self) -> bool:
        """The first replica of the last stage speaks for the run: it knows the loss."""
        return self.seat.rank == self.seat.shape.group_of(len(self.layers) - 1)[0]

    @property
    def leads(self) -> tuple[int, ...]:
        """The stages of which this rank is the first replica."""
        return tuple(s for s in self.stages if self.seat.shape.group_of(s)[0] == self.seat.rank)

    def train(self, mode: bool) -> None:
        """Put the modules into training or evaluation mode; the newest weights are version 0."""
        for number, stage in self.stages.items():
            stage.module.train(mode)
            self.weights[number].begin()

    def share_buffers(self) -> None:
        """Give the first replica's buffers (running statistics) to the others."""
        for number, group in self.groups.items():
            for _, buffer in sorted(self.stages[number].module.named_buffers()):
                group.broadcast(buffer)

    def raised(self, error: Exception, stage: int, inputs: Tensors) -> Exception:
        """The error as the user's, naming the stage and the layer; memory errors stay."""
        if is_out_of_memory(error):
            return error
        file = self.definition.file
        place = f"stage {stage}, {self._guilty(stage, inputs)}"
        message = f"{describe(error, file)} (raised in {place})"
        return ModelRaised(message, detail=user_traceback(error, file))

    def _guilty(self, stage: int, inputs: Tensors) -> str:
        """Which layer raises on these inputs: found by running the stage layer by layer."""
        bundle = tuple(tensor.detach() for tensor in inputs)
        for index in range(*self.layers[stage]):
            try:
                with torch.no_grad():
                    bundle = cut(self.layered, index, index + 1)(*bundle)
            except Exception:
                return f"layer {self.layered.layers[index].name}"
        return "the loss" if stage == len(self.layers) - 1 else "no single layer"


def seated(
    world: World,
    shape: Shape,
    partition: Partition,
    definition: Definition,
    layered: LayeredModel,
    optimizer: OptimizerSpec,
) -> Seated:
    """Take the seat of this rank; every rank calls it. Raises `InvalidInput` where the plan
    is for another number of layers or of ranks."""
    _check(world, shape, partition, layered)
    layers = tuple((stage.first, stage.stop) for stage in partition.stages)
    seat = shape.seats[world.rank]
    stages = {number: _stage(layered, layers, number, definition) for number in seat.stages}
    return Seated(
        world=world,
        seat=seat,
        definition=definition,
        layered=layered,
        layers=layers,
        stages=stages,
        weights={n: Weights(stage.weights, rule(optimizer)) for n, stage in stages.items()},
        groups=_groups(world, shape),
        mail=Mail(transport(world), [layered.specs[first] for first, _ in layers]),
    )


def _stage(
    layered: LayeredModel, layers: Sequence[tuple[int, int]], number: int, definition: Definition
) -> Stage:
    first, stop = layers[number]
    loss = definition.loss if number == len(layers) - 1 else None
    return Stage(cut(layered, first, stop), layered.specs[first], loss)


def _groups(world: World, shape: Shape) -> dict[int, Group]:
    """Every rank makes every group, as torch.distributed wants it; it keeps its own."""
    groups = {}
    for stage in range(shape.num_stages):
        if len(ranks := shape.group_of(stage)) > 1:
            group = world.group(ranks)
            if world.rank in ranks:
                groups[stage] = group
    return groups


def _check(world: World, shape: Shape, partition: Partition, layered: LayeredModel) -> None:
    planned, there = partition.stages[-1].stop, len(layered.layers)
    if planned != there:
        raise InvalidInput(
            f"the plan is for {planned} layers, but the model has {there}",
            "Profile the definition again and make a new plan.",
        )
    if shape.num_ranks != world.size:
        raise InvalidInput(
            f"the plan needs {shape.num_ranks} processes, but {world.size} were started"
        )
