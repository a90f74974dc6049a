"""First values depend on the seed and the model, never on the partition: bit for bit."""

from itertools import pairwise
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor

from tests.unit.workers.architectures import CONFIGS, FURTHER, definition
from workers.definitions.blueprint.blueprint import shapes_in
from workers.definitions.cut import cut
from workers.definitions.definition import LoadedDefinition
from workers.definitions.layers import LayeredModel
from workers.definitions.prepare import outlined, prepare
from workers.definitions.samples import tensors
from workers.runtime.compute.first_values import fill
from workers.runtime.compute.model import Layers

SEED = 11


def cut_evenly(layers: int, parts: int) -> list[tuple[int, int]]:
    return list(pairwise(round(layers * n / parts) for n in range(parts + 1)))


def values_of(model: nn.Module) -> dict[str, Tensor]:
    """The state that has values, by name."""
    found = model.state_dict(keep_vars=True)
    return {name: t.detach() for name, t in found.items() if not isinstance(t, FakeTensor)}


def made_by_stage(shapes: LayeredModel, parts: int) -> dict[str, Tensor]:
    """What `parts` ranks with a stage each make, together; each makes nothing of the others."""
    found: dict[int, Tensor] = {}
    for first, stop in cut_evenly(len(shapes.layers), parts):
        found |= shapes.blueprint.values(shapes_in(cut(shapes, first, stop)))
    state = shapes.model.state_dict(keep_vars=True)
    return {
        name: found[id(tensor)].detach() for name, tensor in state.items() if id(tensor) in found
    }


def held_to_the_factory(loaded: LoadedDefinition) -> None:
    torch.manual_seed(0)
    batch = loaded.example(2)
    whole = prepare(loaded, batch, SEED)
    shapes = outlined(loaded, batch[0], whole.tracing, SEED, large=0)
    assert shapes.specs == whole.specs
    assert shapes.crossings == whole.crossings
    assert [layer.name for layer in shapes.layers] == [layer.name for layer in whole.layers]
    assert whole.num_scores == whole.model(*tensors(batch[0])).shape[-1]
    assert (shapes.num_scores, shapes.edges) == (whole.num_scores, whole.edges)
    expected = loaded.model(SEED).state_dict()
    made = {parts: made_by_stage(shapes, parts) for parts in (1, 2, 4)}
    read = made[1].keys()
    assert len(read) > 0.9 * len(expected)  # a pooler that no layer reads is the first stage's
    for found in made.values():
        assert found.keys() == read
        assert not [name for name in found if not torch.equal(found[name], expected[name])]


def test_the_whole_zoo(small_zoo, small_name: str) -> None:
    held_to_the_factory(small_zoo(small_name))


@pytest.mark.parametrize("name", sorted(CONFIGS | FURTHER))
def test_architectures_of_transformers(tmp_path: Path, name: str) -> None:
    held_to_the_factory(definition(tmp_path, name))


UNREAD = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.unread = (nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))

def model():
    return Model()
"""


@pytest.mark.parametrize(("stage", "names"), [(0, ["a", "unread"]), (1, ["b"])])
def test_a_rank_holds_its_own_and_the_first_what_nobody_reads(define, stage, names) -> None:
    loaded = define(UNREAD)
    layers = Layers(outlined(loaded, torch.rand(2, 4), "symbolic", SEED, large=0))
    fill(layers, [(0, 2), (2, 3)], [stage])
    found, expected = values_of(layers.base.model), loaded.model(SEED).state_dict()
    assert sorted({name.split(".")[0] for name in found}) == names
    assert all(torch.equal(found[name], expected[name]) for name in found)
