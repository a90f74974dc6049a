"""The functional rules are torch.optim's own, in place or not."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.planning.optimizers import OPTIMIZERS
from backend.runs.request.spec import OptimizerSpec
from workers.runtime.state.optimizers import optimizer_of

THEIRS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.1),
    "momentum": lambda p: torch.optim.SGD(p, 0.1, momentum=0.8),
    "adam": lambda p: torch.optim.Adam(p, 0.1),
    "sgd decayed": lambda p: torch.optim.SGD(p, 0.1, weight_decay=0.3),
    "momentum decayed": lambda p: torch.optim.SGD(p, 0.1, momentum=0.8, weight_decay=0.3),
    "adam decayed": lambda p: torch.optim.Adam(p, 0.1, weight_decay=0.3),
    "adamw decayed": lambda p: torch.optim.AdamW(p, 0.1, weight_decay=0.3),
}


def gradients(seed: int, step: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed * 100 + step)
    return [torch.randn(shape, generator=generator).double() for shape in ((3, 2), (4,))]


@pytest.mark.parametrize("name", THEIRS)
@settings(deadline=None)
@given(seed=st.integers(0, 1000), in_place=st.lists(st.booleans(), min_size=1, max_size=6))
def test_equal_to_torch_optim(name: str, seed: int, in_place: list[bool]) -> None:
    mine = [torch.ones(3, 2).double(), torch.zeros(4).double()]
    theirs = [torch.nn.Parameter(weight.clone()) for weight in mine]
    optimizer = THEIRS[name](theirs)
    decay = 0.3 if "decayed" in name else 0.0
    spec = OptimizerSpec(name.split()[0], learning_rate=0.1, momentum=0.8, weight_decay=decay)
    my_rule = optimizer_of(spec)
    for step, changes in enumerate(in_place):
        given_gradients = gradients(seed, step)
        before = [weight.clone() for weight in mine]
        factor = 1 / (step + 1)
        new = my_rule.update(mine, given_gradients, changes, factor)
        assert all(map(torch.equal, given_gradients, gradients(seed, step)))
        assert all((a is b) == changes for a, b in zip(new, mine, strict=True))
        assert changes or all(map(torch.equal, mine, before))
        mine = new
        for parameter, gradient in zip(theirs, given_gradients, strict=True):
            parameter.grad = gradient
        for group in optimizer.param_groups:
            group["lr"] = 0.1 * factor
        optimizer.step()
    assert all(
        torch.allclose(a, b, rtol=1e-12, atol=1e-14) for a, b in zip(mine, theirs, strict=True)
    )


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_each_of_the_catalog_has_a_rule_that_keeps_as_many_copies_as_planned(name) -> None:
    mine = optimizer_of(OptimizerSpec(name))
    weights = [torch.ones(3, 2), torch.zeros(4)]
    mine.update(weights, [torch.ones(3, 2), torch.ones(4)], in_place=False)
    assert len(mine.state) == OPTIMIZERS[name].values
    for kept in mine.state.values():
        assert [one.shape for one in kept] == [one.shape for one in weights]
