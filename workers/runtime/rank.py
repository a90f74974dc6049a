"""What one rank holds for the whole run, made from its plan and its place in the pipeline."""

from collections.abc import Mapping
from dataclasses import dataclass

from backend.errors import InvalidInput
from backend.pipeline.shape import RankCoordinates, Shape
from backend.planning.channels.checks import check_split_layers
from backend.profiles.state_precision import STATE_PRECISIONS
from backend.runs.request.groups import has
from backend.runs.request.spec import TrainSpec
from workers.definitions.loader import LoadedDefinition
from workers.runtime.compute.channels.splitting import Slices, split_stages
from workers.runtime.compute.local_heads.local_loss import LocalLosses
from workers.runtime.compute.model import Layers
from workers.runtime.compute.stage import import_backward
from workers.runtime.compute.stages import Stages, stages
from workers.runtime.compute.variants import bundle_specs
from workers.runtime.messages.groups import Groups, groups
from workers.runtime.messages.queue import MessageQueue
from workers.runtime.messages.transport import Transport, transport
from workers.runtime.messages.world import World
from workers.runtime.state.state import TrainedState, trained_state

SHOWN = 8
"""Names of weights that a refusal lists."""


@dataclass(frozen=True, slots=True)
class Rank:
    """Its parts by who needs what: a function takes the narrowest that it uses.

    world     this process among the others
    rank      its coordinates in the pipeline
    stages    what computes
    state     what training changes
    messages  what goes to and comes from neighbouring stages
    groups    with whom tensors are summed
    slices    of the weights of split layers, by stage; None where the plan splits none
    """

    world: World
    coordinates: RankCoordinates
    stages: Stages
    state: TrainedState
    messages: MessageQueue
    groups: Groups
    slices: Mapping[int, Slices] | None = None


def make_rank(
    world: World,
    shape: Shape,
    definition: LoadedDefinition,
    layers: Layers,
    spec: TrainSpec,
    channel: Transport | None = None,
    losses: LocalLosses | None = None,
) -> Rank:
    """Every rank calls it. `channel` carries its messages, the device's usual one if None; local
    `losses` are those of stages that learn each for itself.
    Raises `InvalidInput` where the plan is for another number of layers or of ranks."""
    check_ranks(world, shape)
    _check_layers(shape, spec, layers)
    _check_groups(spec, layers)
    bounds = stage_bounds(spec)
    coordinates = shape.coordinates[world.rank]
    kept = STATE_PRECISIONS[spec.state_precision]
    numbers = coordinates.stages
    own = stages(definition, layers, bounds, numbers, spec.precision, kept, losses)
    if any(stage.loss is None for stage in own.modules.values()):
        import_backward()
    splits, slices = spec.plan.splits, None
    met = groups(world, shape, bool(splits))
    if splits:
        check_split_layers(spec.plan, [layer.name for layer in layers.base.layers])
        own, slices = split_stages(own, splits, met.channels)
    state = trained_state(spec, coordinates, own.modules, met.replicas, own.tied, slices)
    own.forget_first_values()
    varied = {form: variant.specs for form, variant in own.variants.items()}
    specs = bundle_specs(layers.base, bounds)
    return Rank(
        world,
        coordinates,
        own,
        state,
        MessageQueue(channel or transport(world), specs, varied, spec.plan.codecs),
        met,
        slices,
    )


def stage_bounds(spec: TrainSpec) -> tuple[tuple[int, int], ...]:
    """The layers (first, stop) of each stage of the model."""
    return tuple((stage.first, stage.stop) for stage in spec.plan.partition.stages)


def check_ranks(world: World, shape: Shape) -> None:
    """Raise `InvalidInput` where the plan is for another number of ranks."""
    if shape.num_ranks != world.size:
        raise InvalidInput(
            f"the plan needs {shape.num_ranks} processes, but {world.size} were started"
        )


def _check_groups(spec: TrainSpec, layers: Layers) -> None:
    """Every group has weights: names that are written wrong would else be trained as the others."""
    names = [name for name, each in layers.base.model.named_parameters() if each.requires_grad]
    for group in spec.optimizer.groups:
        if not any(has(group, name) for name in names):
            raise InvalidInput(
                f"no trained weight of the model is called {group.names!r}",
                f"Choose from: {', '.join(names[:SHOWN])}{', ...' * (len(names) > SHOWN)}. A "
                "pattern may have *, and a module's path stands for all below it.",
            )


def _check_layers(shape: Shape, spec: TrainSpec, layers: Layers) -> None:
    partition = spec.plan.partition
    planned, there = partition.stages[-1].stop, len(layers.base.layers)
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
