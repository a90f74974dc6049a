"""What the rank on a seat holds for the whole run: its stages, their weights, their groups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from backend.errors import InvalidInput
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Seat, Shape
from backend.runs.spec import TrainSpec
from workers.definitions.cut import cut
from workers.definitions.errors import ModelRaised, describe, user_traceback
from workers.definitions.layers import LayeredModel
from workers.definitions.loader import Definition
from workers.definitions.record import TensorSpec
from workers.runtime.buckets import Buckets
from workers.runtime.data import Form
from workers.runtime.loss_scale import LossScale
from workers.runtime.mail import Mail
from workers.runtime.optimizers import rule
from workers.runtime.rates import rate
from workers.runtime.release import release
from workers.runtime.reporter import is_out_of_memory
from workers.runtime.stage import Precision, Stage, Tensors
from workers.runtime.ties import ties
from workers.runtime.transport import transport
from workers.runtime.variants import Variant
from workers.runtime.weights import Weights
from workers.runtime.world import Group, World


@dataclass(frozen=True, slots=True)
class Seated:
    """`stages` and `weights` by stage number, `buckets` and `groups` of replicated ones alone,
    `variants` of microbatches of another form.

    layers      each stage's (first, stop)
    lane        the ranks of this lane, None where that is the world, or this rank alone
    sharing     the ranks of all lanes on this device, None for a single lane
    loss_scale  of float16, None for other precisions
    clip_norm   most that the 2-norm of the whole gradient may be; None = any
    elasticity  alpha of elastic averaging
    seed        of the run
    ties        every name of the model's state with all names of the same tensor
    """

    world: World
    seat: Seat
    definition: Definition
    layered: LayeredModel
    layers: tuple[tuple[int, int], ...]
    stages: dict[int, Stage]
    variants: dict[Form, Variant]
    weights: dict[int, Weights]
    groups: dict[int, Group]
    buckets: dict[int, Buckets]
    mail: Mail
    lane: Group | None
    sharing: Group | None
    loss_scale: LossScale | None
    clip_norm: float | None
    elasticity: float
    seed: int
    ties: dict[str, tuple[str, ...]]

    @property
    def is_reporter(self) -> bool:
        """The first replica of the last stage speaks for the run: it knows the loss."""
        return self.seat.rank == self.seat.shape.group_of(len(self.layers) - 1)[0]

    @property
    def leads(self) -> tuple[int, ...]:
        """The stages of which this rank is the first replica of its lane."""
        shape, seat = self.seat.shape, self.seat
        return tuple(s for s in self.stages if shape.group_of(s, seat.lane)[0] == seat.rank)

    def lane_total(self, value: float) -> float:
        """The sum of `value` over the ranks of the lane; all of them call it."""
        if self.seat.shape.num_devices == 1:
            return value
        tensor = torch.tensor([value], dtype=torch.float64, device=self.world.device)
        (self.lane or self.world.everybody).sum(tensor)
        return float(tensor.item())

    def stage(self, number: int, form: Form) -> Stage:
        """The stage for microbatches of this form."""
        variant = self.variants.get(form)
        return self.stages[number] if variant is None else variant.stages[number]

    def train(self, mode: bool) -> None:
        """Put the modules into training or evaluation mode; the newest weights are version 0."""
        for number, stage in self.stages.items():
            stage.module.train(mode)
            for variant in self.variants.values():
                variant.stages[number].module.train(mode)
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
    definition: Definition,
    layered: LayeredModel,
    spec: TrainSpec,
    others: Mapping[Form, LayeredModel] | None = None,
) -> Seated:
    """Take the seat of this rank; every rank calls it. Raises `InvalidInput` where the plan
    is for another number of layers or of ranks."""
    partition = spec.plan.partition
    _check(world, shape, spec, layered)
    layers = tuple((stage.first, stage.stop) for stage in partition.stages)
    seat, names = shape.seats[world.rank], ties(layered.model)
    stages = {n: _stage(layered, layers, n, definition, spec.precision) for n in seat.stages}
    variants = {
        form: Variant(
            {n: _stage(other, layers, n, definition, spec.precision) for n in seat.stages},
            _specs(other, layers),
        )
        for form, other in (others or {}).items()
    }
    varied = {form: variant.specs for form, variant in variants.items()}
    groups = _groups(world, shape)
    buckets = {n: Buckets(stages[n].weights, group) for n, group in groups.items()}
    weights = {n: _weights(spec, seat, n, stages[n], buckets.get(n)) for n in stages}
    foreign = (cut(layered, *layers[n]) for n in range(len(layers)) if n not in stages)
    release((stage.module for stage in stages.values()), foreign)
    return Seated(
        world=world,
        seat=seat,
        definition=definition,
        layered=layered,
        layers=layers,
        stages=stages,
        variants=variants,
        weights=weights,
        groups=groups,
        buckets=buckets,
        mail=Mail(transport(world), _specs(layered, layers), varied),
        lane=_own(world, _lanes(shape)),
        sharing=_own(world, _sharing(shape)),
        loss_scale=LossScale() if spec.precision == "float16" else None,
        clip_norm=spec.optimizer.clip_norm,
        elasticity=1 / shape.lanes if spec.elasticity is None else spec.elasticity,
        seed=spec.seed,
        ties=names,
    )


def _stage(
    layered: LayeredModel,
    layers: Sequence[tuple[int, int]],
    number: int,
    definition: Definition,
    precision: Precision,
) -> Stage:
    first, stop = layers[number]
    loss = definition.loss if number == len(layers) - 1 else None
    return Stage(cut(layered, first, stop), layered.specs[first], loss, precision)


def _specs(
    layered: LayeredModel, layers: Sequence[tuple[int, int]]
) -> tuple[tuple[TensorSpec, ...], ...]:
    """What goes into each stage."""
    return tuple(layered.specs[first] for first, _ in layers)


def _weights(
    spec: TrainSpec, seat: Seat, number: int, stage: Stage, buckets: Buckets | None
) -> Weights:
    member = schedule(spec.plan.schedule)
    changing = rate(spec.optimizer, len(member.updates(seat)), spec.epochs)
    found = Weights(stage.weights, rule(spec.optimizer), buckets, member.consistent, changing)
    if seat.shape.lanes > 1:
        found.keep_reference()
    return found


def _groups(world: World, shape: Shape) -> dict[int, Group]:
    """The group of each stage of this rank that has replicas."""
    groups = {}
    for stage in range(shape.num_stages):
        found = _own(world, [shape.group_of(stage, lane) for lane in range(shape.lanes)])
        if found is not None:
            groups[stage] = found
    return groups


def _lanes(shape: Shape) -> list[tuple[int, ...]]:
    if shape.lanes == 1:
        return []
    ranks = range(shape.num_devices)
    return [tuple(lane * shape.num_devices + r for r in ranks) for lane in range(shape.lanes)]


def _sharing(shape: Shape) -> list[tuple[int, ...]]:
    return [shape.sharing(rank) for rank in range(shape.num_devices)]


def _own(world: World, groups: Sequence[tuple[int, ...]]) -> Group | None:
    """Every rank makes every group of several ranks, as torch.distributed wants it; it keeps
    the one that it is in."""
    own = None
    for ranks in groups:
        if len(ranks) > 1:
            group = world.group(ranks)
            own = group if world.rank in ranks else own
    return own


def _check(world: World, shape: Shape, spec: TrainSpec, layered: LayeredModel) -> None:
    partition = spec.plan.partition
    planned, there = partition.stages[-1].stop, len(layered.layers)
    if planned != there:
        profiled = f", profiled in {spec.planned_in}" if spec.planned_in else ""
        raise InvalidInput(
            f"the plan is for {planned} layers{profiled}, but the model has {there} in "
            f"{spec.precision}",
            f"Profile the definition again, in {spec.precision} or in float32, and make a new "
            "plan.",
        )
    if len(partition.stages) != shape.num_stages:
        raise InvalidInput(
            f"the plan has {len(partition.stages)} stages, its shape {shape.num_stages}"
        )
    if shape.num_ranks != world.size:
        raise InvalidInput(
            f"the plan needs {shape.num_ranks} processes, but {world.size} were started"
        )
