"""The functional rules are torch.optim's own to the last bit, in place or not; Lion is that of its
paper."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from backend.planning.optimizers import OPTIMIZERS
from backend.profiles.state_precision import STATE_PRECISIONS
from backend.runs.request.optimizer_spec import OptimizerSpec, ParameterGroup
from tests.oracles.lion import PlainLion
from workers.profiler.allocations import allocations
from workers.runtime.state import optimizers as module
from workers.runtime.state.grouped import grouped_optimizer, optimizer_of


class Rule(NamedTuple):
    """Of the specification what is beside rate and momentum, and torch's own."""

    name: str
    theirs: Callable[..., torch.optim.Optimizer]
    more: dict[str, Any]


ONE_PASS = partial(torch.optim.SGD, fused=True)
THEIRS = {
    "sgd": Rule("sgd", torch.optim.SGD, {}),
    "momentum": Rule("momentum", ONE_PASS, {"momentum": 0.8}),
    "adam": Rule("adam", torch.optim.Adam, {}),
    "sgd decayed": Rule("sgd", torch.optim.SGD, {"weight_decay": 0.3}),
    "momentum decayed": Rule("momentum", ONE_PASS, {"momentum": 0.8, "weight_decay": 0.3}),
    "adam decayed": Rule("adam", torch.optim.Adam, {"weight_decay": 0.3}),
    "adam otherwise": Rule("adam", torch.optim.Adam, {"betas": (0.5, 0.9), "eps": 1e-3}),
    "adamw decayed": Rule("adamw", torch.optim.AdamW, {"weight_decay": 0.3}),
    "adamw otherwise": Rule(
        "adamw", torch.optim.AdamW, {"weight_decay": 0.3, "betas": (0.8, 0.95), "eps": 1e-2}
    ),
    "adafactor": Rule("adafactor", torch.optim.Adafactor, {"weight_decay": 0.0}),
    "adafactor decayed": Rule("adafactor", torch.optim.Adafactor, {"weight_decay": 0.3}),
    "lion": Rule("lion", PlainLion, {}),
    "lion otherwise": Rule("lion", PlainLion, {"weight_decay": 0.3, "betas": (0.95, 0.98)}),
}
SHAPES = (3, 2), (4,), (2, 3, 2, 2), ()


def gradients(seed: int, step: int, kind: torch.dtype = torch.float64) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed * 100 + step)
    return [torch.randn(shape, generator=generator).to(kind) for shape in SHAPES]


def first(kind: torch.dtype = torch.float64) -> list[torch.Tensor]:
    return [torch.full(shape, place / 2, dtype=kind) for place, shape in enumerate(SHAPES)]


@pytest.mark.parametrize("size", [1, 40, 200])
@pytest.mark.parametrize("count", [0, 1, 7])
def test_portions_are_all_weights_in_their_order(monkeypatch, size: int, count: int) -> None:
    monkeypatch.setattr(module, "PORTION", size)
    weights = [torch.zeros(place % 4) for place in range(count)]
    parts = [weights[part] for part in module.portions(weights)]
    assert [id(weight) for part in parts for weight in part] == list(map(id, weights))
    assert all(len(part) == 1 or sum(w.nbytes for w in part) <= size for part in parts)


@pytest.mark.parametrize("name", [name for name in THEIRS if not name.startswith("adafactor")])
def test_an_update_has_little_alive_beside_what_is_planned(monkeypatch, name: str) -> None:
    """Eight weights of 64 KiB, one at a time: of one its decayed gradient and one more tensor."""
    monkeypatch.setattr(module, "PORTION", 1)
    weights = [torch.rand(128, 128) for _ in range(8)]
    found = [torch.rand(128, 128) for _ in weights]
    ours = optimizer_of(OptimizerSpec(THEIRS[name].name, 0.1, **THEIRS[name].more))
    ours.update(weights, found, in_place=True)  # makes its state
    with allocations(torch.device("cpu")) as allocated:
        allocated.during(lambda: ours.update(weights, found, in_place=True))
    assert allocated.pieces[0].most < 2.5 * weights[0].nbytes


@pytest.mark.parametrize("name", THEIRS)
@given(
    seed=st.integers(0, 1000),
    in_place=st.lists(st.booleans(), min_size=1, max_size=6),
    kind=st.sampled_from([torch.float32, torch.float64]),
)
def test_equal_to_torch_optim(name: str, seed: int, in_place: list[bool], kind) -> None:
    rule, mine = THEIRS[name], first(kind)
    theirs = [torch.nn.Parameter(weight.clone()) for weight in mine]
    optimizer = rule.theirs(theirs, lr=0.1, **rule.more)
    my_rule = optimizer_of(OptimizerSpec(rule.name, learning_rate=0.1, **rule.more))
    for step, changes in enumerate(in_place):
        given_gradients = gradients(seed, step, kind)
        before = [weight.clone() for weight in mine]
        factor = 1 / (step + 1)
        new = my_rule.update(mine, given_gradients, changes, factor)
        assert all(map(torch.equal, given_gradients, gradients(seed, step, kind)))
        assert all((a is b) == changes for a, b in zip(new, mine, strict=True))
        assert changes or all(map(torch.equal, mine, before))
        mine = new
        for parameter, gradient in zip(theirs, given_gradients, strict=True):
            parameter.grad = gradient
        for group in optimizer.param_groups:
            group["lr"] = 0.1 * factor
        optimizer.step()
    if rule.name == "lion":  # as a paper writes it, which says nothing of roundings
        close = 1e-12 if kind is torch.float64 else 1e-5
        assert all(torch.allclose(a, b, close, close) for a, b in zip(mine, theirs, strict=True))
    else:
        assert all(map(torch.equal, mine, theirs))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_each_of_the_catalog_has_a_rule_that_keeps_as_many_copies_as_planned(name) -> None:
    """Adafactor keeps a row and a column of the matrix, and as many as there are of the vector."""
    mine = optimizer_of(OptimizerSpec(name))
    weights = [torch.ones(3, 2), torch.zeros(4)]
    mine.update(weights, [torch.ones(3, 2), torch.ones(4)], in_place=False)
    numbers = [sum(kept[place].numel() for kept in mine.state.values()) for place in (0, 1)]
    values = OPTIMIZERS[name].values
    assert numbers == [3 + 2, 4] if name == "adafactor" else [values * 6, values * 4]


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("kept", ["float32", "bfloat16-masters-state16"])
def test_groups_are_updated_as_torchs_groups_and_go_on_from_their_state(name, kept) -> None:
    """Weights of three rates and two decays, which do not lie side by side."""
    kind, names = STATE_PRECISIONS[kept], ["a.weight", "a.bias", "head.weight", "scale"]
    spec = OptimizerSpec(
        name,
        learning_rate=0.1,
        weight_decay=0.3,
        decayed="matrices",
        groups=(ParameterGroup("head", 0.5), ParameterGroup("*.bias", 2.0, 0.7)),
    )
    updated = [(n, len(shape)) for n, shape in zip(names, SHAPES, strict=True)]
    whole, other = (grouped_optimizer(spec, updated, kind) for _ in range(2))
    rates, decays = (0.1, 0.2, 0.05, 0.1), (0.3, 0.7, 0.3, 0.0)
    mine, theirs = first(), [torch.nn.Parameter(weight) for weight in first()]
    rule = next(rule for rule in THEIRS.values() if rule.name == name)
    groups = [
        {"params": [weight], "lr": rate, "weight_decay": decay}
        for weight, rate, decay in zip(theirs, rates, decays, strict=True)
    ]
    more = {"momentum": 0.9} if name == "momentum" else {}
    optimizer = rule.theirs(groups, **more)
    for step in range(4):
        if step == 2:
            other.load_state({k: [t.clone() for t in v] for k, v in whole.state.items()}, 2)
            again = [weight.clone() for weight in mine]
        for parameter, gradient in zip(theirs, gradients(0, step), strict=True):
            parameter.grad = gradient
        optimizer.step()
        mine = whole.update(mine, gradients(0, step), in_place=step % 2 == 0)
        if step >= 2:
            again = other.update(again, gradients(0, step), in_place=step % 2 == 0)
    assert all(map(torch.equal, again, mine))
    if not kind.is_rounded:
        pairs = zip(mine, theirs, strict=True)
        assert all(torch.allclose(a, b, rtol=1e-12, atol=1e-14) for a, b in pairs)
