"""The scale falls at an overflow and rises after long quiet, as torch's own does."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.runtime.state import loss_scale
from workers.runtime.state.loss_scale import FIRST, INTERVAL, LEAST, MOST, LossScale


def test_an_overflow_halves_it_and_begins_the_count_again() -> None:
    scale = LossScale(quiet=INTERVAL - 1)
    scale.told(is_finite=False)
    assert (scale.value, scale.quiet) == (FIRST / 2, 0)


def test_it_doubles_after_many_updates_and_has_bounds() -> None:
    scale = LossScale()
    for _ in range(INTERVAL):
        scale.told(is_finite=True)
    assert (scale.value, scale.quiet) == (2 * FIRST, 0)
    high, low = LossScale(MOST, INTERVAL - 1), LossScale(LEAST)
    high.told(is_finite=True)
    low.told(is_finite=False)
    assert (high.value, low.value) == (MOST, LEAST)


@settings(max_examples=20)
@given(st.lists(st.booleans(), max_size=12))
def test_it_moves_as_torchs_scaler_does(finite: list[bool]) -> None:
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], 1.0)
    theirs = torch.amp.GradScaler("cpu", init_scale=FIRST, growth_interval=loss_scale.INTERVAL)
    ours = LossScale()
    for is_finite in finite:
        theirs.scale(weight.sum())
        weight.grad = torch.ones(1) if is_finite else torch.full((1,), torch.inf)
        theirs.step(optimizer)
        theirs.update()
        ours.told(is_finite)
        assert ours.value == theirs.get_scale()
