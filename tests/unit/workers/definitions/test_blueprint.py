"""A factory on shapes: first values are those of the factory itself, to the last bit, however
little of the model is made."""

import copy

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn.utils import parametrizations

from workers.definitions.blueprint.blueprint import (
    NotByShapes,
    blueprint,
    shapes_in,
    tensors_in,
)
from workers.definitions.blueprint.seeded import seeded

N = 24


class Initialised(nn.Module):
    """What people write into constructors."""

    def __init__(self) -> None:
        super().__init__()
        self.orthogonal, self.truncated = nn.Linear(N, N), nn.Linear(N, N)
        nn.init.orthogonal_(self.orthogonal.weight)
        nn.init.trunc_normal_(self.truncated.weight, std=0.02)
        self.eye, self.sparse = nn.Linear(N, N), nn.Linear(N, N)
        nn.init.eye_(self.eye.weight)
        nn.init.sparse_(self.sparse.weight, 0.1)
        self.convolution = nn.Conv2d(4, 4, 5)
        nn.init.dirac_(self.convolution.weight)
        self.generated = nn.Parameter(torch.randn(N, N, generator=torch.Generator().manual_seed(7)))
        self.words = nn.Embedding(N, N, padding_idx=3)


class Copied(nn.Module):
    """Weights that are tied to, or copied or computed from, those of other layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.tied, self.shared = (nn.Linear(N, N) for _ in range(3))
        self.tied.weight = self.first.weight
        self.shared.weight.data = self.first.weight.data
        self.turned = nn.Linear(N, N)
        self.turned.weight.data = self.first.weight.data.t().clone() * 2
        self.written = nn.Linear(N, N)
        with torch.no_grad():
            self.written.weight.copy_(self.first.weight)
            self.written.weight[:3] = torch.tensor([1.0, 2.0, 3.0])[:, None]
            self.written.weight[5].zero_()
            self.written.weight.mul_(self.first.weight.abs().max())
        self.twin = copy.deepcopy(self.first)
        self.layers = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(N, 2, N), 2, enable_nested_tensor=False
        )
        self.normed = parametrizations.weight_norm(nn.Linear(N, N))
        self.spectral = parametrizations.spectral_norm(nn.Linear(N, N))
        self.double()
        self.float()


class Computed(nn.Module):
    """Buffers, numbers and shapes that depend on values."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.recurrent = nn.Linear(N, N), nn.LSTM(N, N, 2)
        self.register_buffer("mask", torch.tril(torch.ones(N, N)))
        self.register_buffer("total", torch.tensor(float(self.layer.weight.sum())))
        rates = [rate.item() for rate in torch.linspace(0, 0.3, N)]
        self.rates = nn.Parameter(torch.tensor(rates))
        drawn = self.layer.weight.detach()
        self.chosen = nn.Parameter(drawn[drawn.sum(1) > 0][:2].clone())
        self.mixed = nn.Parameter(drawn[torch.randperm(N)])
        self.narrow = nn.Parameter(torch.randn(N, N).bfloat16())
        self.plain = torch.randn(N, N)
        self.table = [torch.randn(N, N)]


def state(model: nn.Module) -> list[Tensor]:
    return [tensor for _, _, tensor in tensors_in(model)]


@pytest.mark.parametrize("large", [0, 100, 2**16])
@pytest.mark.parametrize("factory", [Initialised, Copied, Computed])
def test_values_are_those_of_the_factory(factory: type[nn.Module], large: int) -> None:
    model, made = seeded(factory, 3), blueprint(factory, 3, large=large)
    expected, shapes = state(model), state(made.model)
    values = made.values(tensor for tensor in shapes if isinstance(tensor, FakeTensor))
    assert len(expected) == len(shapes)
    for one, shape in zip(expected, shapes, strict=True):
        value = values.get(id(shape), shape)
        assert torch.equal(one.detach(), value.detach())
        assert (type(one), one.requires_grad, one.stride()) == (
            type(value),
            value.requires_grad,
            value.stride(),
        )


@pytest.mark.parametrize("factory", [Initialised, Copied, Computed])
def test_each_tensor_alone_is_as_among_the_others(factory: type[nn.Module]) -> None:
    model, made = seeded(factory, 5), blueprint(factory, 5, large=0)
    for one, shape in zip(state(model), state(made.model), strict=True):
        if isinstance(shape, FakeTensor):
            assert torch.equal(one.detach(), made.values([shape])[id(shape)].detach())


def test_what_is_one_tensor_stays_one() -> None:
    made = blueprint(Copied, 0, large=0)
    made.fill(made.model, wanted=shapes_in(made.model))
    assert made.model.tied.weight is made.model.first.weight
    assert not shapes_in(made.model)


def test_a_recurrent_layer_computes_with_its_own_weights() -> None:
    made, x = blueprint(Computed, 1, large=0), torch.rand(3, 2, N)
    made.fill(made.model, wanted=shapes_in(made.model))
    assert torch.equal(made.model.recurrent(x)[0], seeded(Computed, 1).recurrent(x)[0])


def test_only_what_is_wanted_is_made() -> None:
    made = blueprint(Initialised, 0, large=0)
    wanted = [made.model.truncated.weight]
    made.fill(made.model, wanted=wanted)
    left = shapes_in(made.model)
    values = [tensor for tensor in state(made.model) if not isinstance(tensor, FakeTensor)]
    assert len(left) == len({id(tensor) for tensor in state(made.model)}) - 1
    assert [tuple(tensor.shape) for tensor in values] == [(N, N)]
    assert made.model.truncated.weight is values[0]


def test_what_is_written_over_is_never_made() -> None:
    def factory() -> nn.Module:
        layer = nn.Linear(N, N)  # draws its weight and its bias
        nn.init.zeros_(layer.weight)
        return layer

    made = blueprint(factory, 0, large=0)
    steps = made._steps._needed([made._steps.place(made._origins[id(made.model.weight)])])
    drawn = [step.seed for step, _ in steps if step.seed is not None]
    assert not drawn
    assert not made.values([made.model.weight])[id(made.model.weight)].any()


def test_seeds_decide_and_a_seed_of_the_authors_does_not() -> None:
    def factory() -> nn.Module:
        torch.manual_seed(42)
        return nn.Linear(N, N)

    one, again, other = (seeded(factory, seed).weight for seed in (1, 1, 2))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_a_draw_does_not_depend_on_those_before() -> None:
    def factory(width: int) -> nn.Module:
        return nn.ModuleList([nn.Linear(width, width, bias=False), nn.Linear(N, N)])

    one, other = (seeded(lambda w=w: factory(w), 1)[1].weight for w in (2, 200))
    assert torch.equal(one, other)


def test_the_generator_is_left_where_it_was() -> None:
    seeded(lambda: nn.Linear(N, N), 9)
    one = torch.rand(3)
    seeded(lambda: nn.Linear(2 * N, N), 9)
    assert torch.equal(one, torch.rand(3))


class Hidden(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(N, N)
        self.inner.pair = (torch.randn(N, N), torch.randn(N, N))


def test_a_tensor_out_of_sight_is_named() -> None:
    with pytest.raises(NotByShapes, match=r"inner.pair holds tensors in a tuple; let register_b"):
        blueprint(Hidden, 0, large=0)
    blueprint(Hidden, 0)  # small tensors have values at once
