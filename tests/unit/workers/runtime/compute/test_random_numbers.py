"""A forward's noise depends on what it computes, not on when."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from workers.runtime.compute.random_numbers import forward_seed, set_seed

PLACE = st.tuples(*[st.integers(0, 2000)] * 4)


@given(PLACE, PLACE)
def test_another_place_has_another_seed(a, b) -> None:
    assert (forward_seed(*a) == forward_seed(*b)) == (a == b)
    assert 0 <= forward_seed(*a) < 2**63


def test_the_same_seed_gives_the_same_dropout() -> None:
    drawn = []
    for value in (1, 2, 1):
        set_seed(value, torch.device("cpu"))
        drawn.append(torch.nn.functional.dropout(torch.ones(50), 0.5))
    assert torch.equal(drawn[0], drawn[2])
    assert not torch.equal(drawn[0], drawn[1])
