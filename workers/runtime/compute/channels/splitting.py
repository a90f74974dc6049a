"""The stages of a rank with slices in place of the layers that its plan splits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, fx, nn

from backend.errors import InvalidInput
from backend.planning.channels.layer_split import LayerSplit, sizes_of
from workers.definitions.layers import LayeredModel
from workers.runtime.compute.channels.exchanges import Counts, Replicas, Together, narrowed
from workers.runtime.compute.channels.layers import SPLIT_LAYERS
from workers.runtime.compute.stage import StageModule
from workers.runtime.compute.stages import Stages


@dataclass(frozen=True, slots=True)
class ChannelSlice:
    """Of a weight that the replicas of a stage split along `dim`, so many channels each."""

    dim: int
    sizes: Counts
    together: Together

    @property
    def first(self) -> int:
        """The first channel of this replica."""
        return sum(self.sizes[: self.together.place])

    def own(self, whole: Tensor) -> Tensor:
        """This replica's slice."""
        return narrowed(whole, self.sizes, self.together.place, self.dim)

    def like_whole(self, own: Tensor) -> Tensor:
        """A tensor of the whole one's shape, whatever its numbers."""
        shape = (*own.shape[: self.dim], sum(self.sizes), *own.shape[self.dim + 1 :])
        return own.new_empty(shape)

    def whole(self, own: Tensor) -> Tensor:
        """The slices of all replicas, which all call it."""
        return self.together.joined(own.detach(), self.sizes, self.dim)


Slices = Mapping[str, ChannelSlice]
"""Of a stage's weights, by name."""


def split_stages(
    stages: Stages, splits: Sequence[LayerSplit], groups: Mapping[int, Replicas]
) -> tuple[Stages, dict[int, Slices]]:
    """The same with the first values of this replica's slices, and these by stage: of every stage
    of this rank that has a group in `groups`. Raises `InvalidInput` where a layer cannot be
    split."""
    found: dict[int, Slices] = {}
    for number, group in groups.items():
        first, stop = stages.bounds[number]
        own = {layer.name for layer in stages.layered.layers[first:stop]}
        here = [split for split in splits if split.layer in own]
        made = [_split(stages, split, Together(group)) for split in here]
        found[number] = {name: each for slices, _, _ in made for name, each in slices.items()}
        for at in (stages.modules, *(variant.stages for variant in stages.variants.values())):
            at[number] = _put(at[number], {path: layer for _, path, layer in made})
    is_split = frozenset(number for number, slices in found.items() if slices)
    return replace(stages, split=is_split), found


def _split(
    stages: Stages, split: LayerSplit, together: Together
) -> tuple[dict[str, ChannelSlice], str, nn.Module]:
    """The slices of the layer's weights, its path in the model, and what takes its place."""
    path = _path(stages.layered, split)
    whole = stages.layered.model.get_submodule(path)
    made, dims = SPLIT_LAYERS[type(whole), split.kind]
    named = {f"{path}.{name}": each for name, each in whole.named_parameters()}
    for name, weight in named.items():
        if not weight.requires_grad or len(stages.tied[name]) > 1:
            raise _refused(split, f"its {name} is tied to another layer's or not trained")
    parts = split.parts or (1,) * len(together.group.ranks)
    slices = {
        f"{path}.{name}": ChannelSlice(
            dim, sizes_of(named[f"{path}.{name}"].shape[dim], parts), together
        )
        for name, dim in dims.items()
        if f"{path}.{name}" in named
    }
    sizes = slices[f"{path}.weight"].sizes
    if 0 in sizes:
        channels = f"{sum(sizes)} channels in the ratio {':'.join(map(str, parts))}"
        raise _refused(split, f"of {channels} a replica would have none")
    sliced = made(whole, sizes, together)
    for weight in named.values():  # before the next layer is sliced, which needs the room
        weight.data = torch.empty(0, dtype=weight.dtype, device=weight.device)
    return slices, path, sliced


def _path(layered: LayeredModel, split: LayerSplit) -> str:
    """Of the module that the layer calls, and nothing else."""
    nodes = next(layer.nodes for layer in layered.layers if layer.name == split.layer)
    if layered.graph is None or [node.op for node in nodes] != ["call_module"]:
        raise _refused(split, "it is not the call of one module")
    path = str(nodes[0].target)
    module = layered.model.get_submodule(path)
    if (type(module), split.kind) not in SPLIT_LAYERS:
        raise _refused(split, f"it is a {type(module).__name__}")
    if isinstance(module, nn.Embedding) and not _is_plain(module):
        raise _refused(split, "it has padding_idx, max_norm, sparse or scale_grad_by_freq")
    if sum(_calls(node, path) for node in layered.graph.nodes) > 1:
        raise _refused(split, "its module is called more than once")
    return path


def _calls(node: fx.Node, path: str) -> bool:
    return node.op == "call_module" and node.target == path


def _is_plain(table: nn.Embedding) -> bool:
    scaled = table.max_norm is not None or table.scale_grad_by_freq
    return table.padding_idx is None and not (scaled or table.sparse)


def _put(stage: StageModule, layers: Mapping[str, nn.Module]) -> StageModule:
    """The stage with these layers at their paths; only its own graph calls them."""
    for path, layer in layers.items():
        stage.module.set_submodule(path, layer)
    return replace(stage, module=stage.module)


def _refused(split: LayerSplit, reason: str) -> InvalidInput:
    return InvalidInput(
        f"layer {split.layer} cannot be split by channels: {reason}",
        "Runs split linear and embedding layers that have their weights to themselves: leave "
        "this layer out of the plan's splits.",
    )
