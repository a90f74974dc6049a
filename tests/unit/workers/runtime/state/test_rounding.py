"""Updates of weights and state that are kept in bfloat16."""

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.planning.optimizers import OPTIMIZERS
from backend.profiles.state_precision import STATE_PRECISIONS
from backend.runs.request.optimizer_spec import OptimizerSpec
from tests.unit.workers.runtime.state.adding import add
from tests.unit.workers.runtime.state.peers import Still
from workers.runtime.state.exchanges.elastic import Elastic
from workers.runtime.state.grouped import optimizer_of
from workers.runtime.state.rounding import RoundedUpdates, masters, rounded
from workers.runtime.state.weights import Weights

ROUNDING = [name for name, kind in STATE_PRECISIONS.items() if kind.is_rounded]
SHAPES = {"matrix": (4, 3), "vector": (5,)}


def first(seed: int) -> dict[str, torch.Tensor]:
    torch.manual_seed(seed)
    return {name: torch.randn(shape) for name, shape in SHAPES.items()}


def held(
    name: str, optimizer: str, seed: int = 0, exchange: Elastic | None = None, **more: float
) -> Weights:
    """Weights as a rank has them."""
    kind, given_first = STATE_PRECISIONS[name], first(seed)
    rule = partial(optimizer_of, OptimizerSpec(optimizer, 0.05, **more))
    kept = rounded(given_first, kind)
    rounding = RoundedUpdates(rule, kind)
    return Weights(kept, rounding, masters=masters(given_first, kind), exchange=exchange)


def gradients(weights: Weights, step: int) -> dict[str, torch.Tensor]:
    torch.manual_seed(1000 + step)
    return {name: torch.randn(w.shape).to(w.dtype) for name, w in weights.newest.items()}


def same(mine: Weights, other: Weights) -> bool:
    return all(torch.equal(mine.exact[name], other.exact[name]) for name in SHAPES)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", ROUNDING)
@settings(max_examples=15)
@given(seed=st.integers(0, 1000), awaited=st.lists(st.booleans(), min_size=1, max_size=5))
def test_each_update_is_float32s_rounded_once(name, optimizer, seed, awaited):
    """The oracle: the plain rule on float32 copies, and a rounding of all that is kept."""
    kind, mine = STATE_PRECISIONS[name], held(name, optimizer, seed, weight_decay=0.1)
    rule = optimizer_of(OptimizerSpec(optimizer, 0.05, weight_decay=0.1))
    weights = [weight.clone() for weight in first(seed).values()]
    low = [w.bfloat16() if kind.weight == 2 and w.dim() > 1 else w for w in weights]
    if not kind.master:
        weights = [weight.float() for weight in low]
    for step, is_awaited in enumerate(awaited):
        found = gradients(mine, step)
        add(mine, found)
        mine.step(step + 1, 1, lambda version, is_awaited=is_awaited: is_awaited)
        weights = rule.update(weights, [g.float() for g in found.values()], in_place=True)
        low = [weight.to(kept.dtype) for weight, kept in zip(weights, low, strict=True)]
        if not kind.master:
            weights = [weight.float() for weight in low]
        if kind.state == 2 and rule.state:
            kept = {k: [t.bfloat16().float() for t in v] for k, v in rule.state.items()}
            rule.load_state(kept, step + 1)
        assert all(map(torch.equal, mine.newest.values(), low))
        assert all(
            weight.requires_grad and weight.is_leaf for weight in mine.at(mine.kept[-1]).values()
        )


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", ROUNDING)
def test_state_takes_the_bytes_that_are_planned(name, optimizer):
    kind, mine = STATE_PRECISIONS[name], held(name, optimizer)
    add(mine, gradients(mine, 0))
    mine.step(1, 1, lambda version: False)
    state = mine.optimizer_state
    for tensors in state.values():
        assert [tensor.element_size() for tensor in tensors] == [kind.state] * 2
    if OPTIMIZERS[optimizer].is_elementwise:
        assert len(state) == OPTIMIZERS[optimizer].values
        for tensors in state.values():
            assert [tensor.shape for tensor in tensors] == [w.shape for w in mine.newest.values()]
    assert mine.newest["matrix"].element_size() == kind.weight
    assert mine.newest["vector"].dtype == torch.float32
    assert (mine.exact is not mine.newest) == bool(kind.master)
    assert mine.exact["matrix"].element_size() == (kind.master or kind.weight)
    assert {name: g.dtype for name, g in zip(SHAPES, mine.gradients, strict=True)} == {
        name: w.dtype for name, w in mine.newest.items()
    }


def test_masters_gather_updates_that_bfloat16_alone_would_lose():
    """Of 1 a thousandth is less than half of bfloat16's step, 1/256 above and 1/512 below."""
    found = {}
    for name in ("bfloat16-masters", "bfloat16"):
        kind, one = STATE_PRECISIONS[name], {"w": torch.ones(2, 2)}
        rule = partial(optimizer_of, OptimizerSpec("sgd", 1e-3))
        kept = Weights(rounded(one, kind), RoundedUpdates(rule, kind), masters=masters(one, kind))
        for step in range(100):
            add(kept, {"w": torch.ones(2, 2, dtype=torch.bfloat16)})
            kept.step(step + 1, 1, lambda version: False)
        found[name] = float(kept.newest["w"].detach()[0, 0])
    assert found == {"bfloat16-masters": pytest.approx(0.9, abs=2e-3), "bfloat16": 1.0}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", ROUNDING)
def test_it_goes_on_bit_for_bit_from_what_is_exact(name, optimizer):
    whole, other = held(name, optimizer), held(name, optimizer, seed=1)
    for step in range(6):
        if step == 3:
            kept = {name: tensor.detach().clone() for name, tensor in whole.exact.items()}
            state = {k: [t.clone() for t in v] for k, v in whole.optimizer_state.items()}
            other.restore(kept, state, 3)
        for each in (whole, other) if step >= 3 else (whole,):
            add(each, gradients(whole, step))
            each.step(step + 1, 1, lambda version: False)
    assert same(whole, other)
    assert all(map(torch.equal, whole.newest.values(), other.newest.values()))


@pytest.mark.parametrize("name", STATE_PRECISIONS)
@pytest.mark.parametrize("before", STATE_PRECISIONS)
def test_it_goes_on_from_any_precision(before, name):
    """What is kept afterwards is what was exact, rounded once."""
    old, new = held(before, "adam"), held(name, "adam", seed=1)
    add(old, gradients(old, 0))
    old.step(1, 1, lambda version: False)
    kept = {name: tensor.detach().clone() for name, tensor in old.exact.items()}
    new.restore(kept, old.optimizer_state, 1)
    kind = STATE_PRECISIONS[name]
    for weight, tensor in kept.items():
        assert torch.equal(new.newest[weight], tensor.to(new.newest[weight].dtype))
        if kind.master:
            assert torch.equal(new.exact[weight], tensor.float())
    add(new, gradients(new, 1))
    new.step(1, 1, lambda version: False)
    assert all(torch.isfinite(weight).all() for weight in new.newest.values())


@pytest.mark.parametrize("name", ["bfloat16-masters", "bfloat16"])
def test_pipelines_are_averaged_as_exactly_as_weights_are_known(name):
    """Two of them, a step apart from a reference between: nothing is lost but by rounding."""
    one = held(name, "sgd", exchange=Elastic(0.5))
    reference = one.exchange_state["reference"]
    assert reference["matrix"].dtype == one.exact["matrix"].dtype
    add(one, gradients(one, 0))
    one.step(1, 1, lambda version: False)
    before = {name: weight.detach().clone() for name, weight in one.exact.items()}
    begun = {name: weight.clone() for name, weight in reference.items()}
    one.exchange(Still())
    reference = one.exchange_state["reference"]
    for name_, exact in one.exact.items():
        half = (before[name_] - begun[name_]) * 0.5
        assert torch.equal(exact.detach(), before[name_] - half)
        assert torch.equal(reference[name_], begun[name_] + half)
        assert torch.equal(one.newest[name_].detach(), exact.detach().to(one.newest[name_].dtype))
        assert one.evaluated[name_].dtype == one.newest[name_].dtype
        assert torch.equal(one.evaluated[name_], reference[name_].to(one.newest[name_].dtype))


def test_the_norm_of_bfloat16_gradients_has_the_digits_of_float32():
    kept = held("bfloat16", "sgd")
    found = {name: torch.full_like(weight, 1 / 3) for name, weight in kept.newest.items()}
    add(kept, found)
    exact = sum(float((gradient.double() ** 2).sum()) for gradient in found.values())
    assert sum(kept.squares(1)) == pytest.approx(exact, rel=1e-6)
