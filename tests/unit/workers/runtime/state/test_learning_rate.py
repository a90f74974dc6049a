"""The learning rate's factor: warm-up, then a decay, in step over all stages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.runs.request.spec import OptimizerSpec
from workers.runtime.state.learning_rate import learning_rate_factor


def factors(spec: OptimizerSpec, per_epoch: int, epochs: int) -> list[float]:
    factor = learning_rate_factor(spec, per_epoch, epochs)
    return [factor(updates) for updates in range(per_epoch * epochs)]


def test_nothing_asked_for_means_nothing_changes() -> None:
    assert factors(OptimizerSpec(), 3, 2) == [1.0] * 6


def test_the_warm_up_rises_evenly_to_its_full_height() -> None:
    assert factors(OptimizerSpec(warm_up=1.0), 4, 2) == [0.25, 0.5, 0.75, 1, 1, 1, 1, 1]


def test_steps() -> None:
    spec = OptimizerSpec(decay="step", decay_epochs=1.0, decay_factor=0.5)
    assert factors(spec, 2, 3) == [1, 1, 0.5, 0.5, 0.25, 0.25]


def test_linear_goes_to_nothing() -> None:
    assert factors(OptimizerSpec(decay="linear"), 2, 2) == pytest.approx([1, 0.75, 0.5, 0.25])


def test_a_cosine_after_the_warm_up_is_half_way_down_in_the_middle() -> None:
    found = factors(OptimizerSpec(decay="cosine", warm_up=1.0), 2, 5)
    assert found[:3] == [0.5, 1, 1]
    assert found[6] == pytest.approx(0.5)


@given(
    st.sampled_from(["none", "step", "linear", "cosine"]),
    st.integers(1, 6),
    st.integers(1, 5),
    st.floats(0, 2),
)
def test_replicas_that_update_half_as_often_keep_step(decay, per_epoch, epochs, warm_up) -> None:
    spec = OptimizerSpec(decay=decay, warm_up=0.0, decay_epochs=1.0)
    often, seldom = factors(spec, 2 * per_epoch, epochs), factors(spec, per_epoch, epochs)
    assert often[::2] == pytest.approx(seldom)
    assert all(0 <= f <= 1 for f in factors(OptimizerSpec(decay=decay, warm_up=warm_up), 3, 4))
