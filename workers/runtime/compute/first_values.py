"""The first values of what a rank owns, in a model of shapes."""

from collections.abc import Sequence

from torch import Tensor

from workers.definitions.blueprint.blueprint import shapes_in
from workers.definitions.cut import cut
from workers.runtime.compute.model import Layers


def fill(layers: Layers, bounds: Sequence[tuple[int, int]], numbers: Sequence[int]) -> None:
    """Make the first values of the stages `numbers`, or read them from the files of weights. What
    no stage reads belongs to the first stage, which writes it into the trained model."""
    base = layers.base
    assert base.blueprint is not None, "the model has values already"
    own = [tensor for number in numbers for tensor in shapes_in(cut(base, *bounds[number]))]
    if 0 in numbers:
        own += _unread(layers, bounds)
    models = (base.model, *(other.model for other in layers.others.values()))
    base.blueprint.fill(*models, wanted=own)
    if layers.weights is not None:
        layers.weights.load(base.model)


def _unread(layers: Layers, bounds: Sequence[tuple[int, int]]) -> list[Tensor]:
    """What the model keeps and no stage reads."""
    read = {id(t) for first, stop in bounds for t in shapes_in(cut(layers.base, first, stop))}
    return [tensor for tensor in shapes_in(layers.base.model) if id(tensor) not in read]
