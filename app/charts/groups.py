"""What a chart over the layers shows as one: a layer, a block, or equal blocks folded."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate

from app.formats import count, shorten
from backend.profiles.folds import Fold, folded
from backend.profiles.layer import Layer
from backend.profiles.pair import ProfilePair
from backend.profiles.profile import ModelGraph

FEW = 40
"""Up to so many layers each is shown by itself."""
NARROWEST, WIDEST = 4, 16
"""Units of a fold on an axis on which a layer has one."""
LABEL = 16  # characters
Value = Callable[[Layer], float]


class Detail(StrEnum):
    """How much of a model's equal blocks is shown."""

    FOLDED = "Folded"
    BLOCKS = "Blocks"
    LAYERS = "Layers"


@dataclass(frozen=True, slots=True)
class LayerGroup:
    """`count` equal blocks, or one; a block is a layer, or several. `first` is the index of the
    first of `layers`."""

    name: str
    first: int
    count: int
    layers: tuple[Layer, ...]

    @property
    def stop(self) -> int:
        """The index behind its last layer."""
        return self.first + len(self.layers)

    @property
    def size(self) -> int:
        """Layers of a block."""
        return len(self.layers) // self.count

    @property
    def wide(self) -> int:
        """Units on an axis."""
        return max(NARROWEST, min(WIDEST, self.count)) if self.count > 1 else 1

    @property
    def label(self) -> str:
        """A few characters for an axis: "32 × block", "…self_attn.q_proj"."""
        return f"{self.count} × block" if self.count > 1 else shorten(self.name, LABEL)

    @property
    def kind(self) -> str:
        """A layer's own, "16 layers", "80 × LlamaDecoderLayer"."""
        block = self.layers[0].kind if self.size == 1 else count(self.size, "layer")
        return f"{self.count} × {block}" if self.count > 1 else block

    def of(self, layers: Sequence[Layer | None]) -> "LayerGroup | None":
        """The same of another model's layers, in this one's order; None where one is missing."""
        found = tuple(layer for layer in layers[self.first : self.stop] if layer is not None)
        if len(found) < len(self.layers):
            return None
        return replace(self, layers=found)

    def total(self, value: Value) -> float:
        """Of all its layers together."""
        return sum(map(value, self.layers))

    def each(self, value: Value) -> float:
        """Of one block, as the mean of all."""
        return self.total(value) / self.count

    def spread(self, value: Value) -> tuple[float, float]:
        """Of the block with the least and of that with the most."""
        sums = [
            sum(map(value, self.layers[at : at + self.size]))
            for at in range(0, len(self.layers), self.size)
        ]
        return min(sums), max(sums)


def groups(graph: ModelGraph, detail: Detail) -> tuple[LayerGroup, ...]:
    """Every layer in one of them, in order; a model of few layers has no folds."""
    number = len(graph.layers)
    is_whole = number <= FEW or detail is Detail.LAYERS
    items = tuple(range(number)) if is_whole else folded(graph)
    return tuple(_groups(graph.layers, items, detail))


def folds(graph: ModelGraph) -> tuple[Fold, ...]:
    """Those that pages show: none of a model of few layers."""
    if len(graph.layers) <= FEW:
        return ()
    return tuple(item for item in folded(graph) if isinstance(item, Fold))


def details(graph: ModelGraph) -> tuple[Detail, ...]:
    """What can be chosen: layers alone where nothing is folded."""
    found = folds(graph)
    if all(fold.size == 1 for fold in found):
        return (Detail.FOLDED, Detail.LAYERS) if found else (Detail.LAYERS,)
    return tuple(Detail)


def pair_groups(
    pair: ProfilePair, detail: Detail
) -> Iterator[tuple[LayerGroup, LayerGroup | None, LayerGroup | None]]:
    """Each group of the layers that either profile has, as the one and as the other has it."""
    found = list(pair.layers())
    either = tuple(layer for each in found if (layer := each.one or each.other) is not None)
    ones, others = [each.one for each in found], [each.other for each in found]
    for group in groups(ModelGraph.chain(either), detail):
        yield group, group.of(ones), group.of(others)


def compute(layer: Layer) -> float:
    """Seconds of its forward and its backward."""
    return layer.compute


def _groups(
    layers: Sequence[Layer], items: Sequence[Fold | int], detail: Detail
) -> Iterator[LayerGroup]:
    for item in items:
        if not isinstance(item, Fold):
            yield LayerGroup(layers[item].name, item, 1, (layers[item],))
        elif detail is Detail.FOLDED:
            of = tuple(layers[item.first : item.stop])
            yield LayerGroup(item.name, item.first, item.count, of)
        else:
            for name, block in zip(item.names, item.blocks, strict=True):
                yield LayerGroup(name, block.start, 1, tuple(layers[block.start : block.stop]))


def edges(found: Sequence[LayerGroup]) -> list[int]:
    """Where groups begin on an axis of units, and where the last one ends."""
    return [0, *accumulate(group.wide for group in found)]
