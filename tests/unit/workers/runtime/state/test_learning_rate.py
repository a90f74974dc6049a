"""The learning rate's factor: warm-up, then a decay, in step over all stages."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.optim.lr_scheduler import LinearLR, LRScheduler, OneCycleLR, StepLR
from transformers import (
    get_constant_schedule_with_warmup,
    get_cosine_schedule_with_warmup,
    get_inverse_sqrt_schedule,
    get_linear_schedule_with_warmup,
)

from backend.planning.plan import Partition, Plan, Stage
from backend.runs.request.learning_rate import learning_rate_factor, num_scheduled
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import StopSpec, TrainSpec


def factors(spec: OptimizerSpec, per_epoch: int, epochs: int) -> list[float]:
    factor = learning_rate_factor(spec, per_epoch, per_epoch * epochs)
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


def theirs(make: Callable[[torch.optim.Optimizer], LRScheduler], updates: int) -> list[float]:
    """The rates that a scheduler gives to a rate of 1."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 1.0)
    scheduler, found = make(optimizer), []
    for _ in range(updates):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return found


@given(st.integers(0, 9), st.integers(1, 12))
def test_after_a_warm_up_in_updates_rates_are_those_of_transformers(warm: int, total: int) -> None:
    made = {
        "none": lambda o: get_constant_schedule_with_warmup(o, warm),
        "linear": lambda o: get_linear_schedule_with_warmup(o, warm, total),
        "cosine": lambda o: get_cosine_schedule_with_warmup(o, warm, total),
        "inverse-sqrt": lambda o: get_inverse_sqrt_schedule(o, warm),
    }
    for name, make in made.items():
        spec = OptimizerSpec(decay=name, warm_up_updates=warm)
        assert factors(spec, total, 1) == pytest.approx(theirs(make, total), abs=1e-14)


def test_one_cycle_steps_and_a_warm_up_in_epochs_are_those_of_torch() -> None:
    found = factors(OptimizerSpec(decay="one-cycle"), 20, 2)
    wanted = theirs(partial(OneCycleLR, max_lr=1.0, total_steps=41, cycle_momentum=False), 40)
    assert found != pytest.approx(wanted, abs=1e-3)
    wanted = theirs(partial(_one_cycle, share=0.3), 40)
    assert found == pytest.approx(wanted, abs=1e-14)
    for warmed in (
        OptimizerSpec(decay="one-cycle", warm_up=0.5),
        OptimizerSpec(decay="one-cycle", warm_up_updates=10),
    ):
        assert factors(warmed, 20, 2) == pytest.approx(theirs(partial(_one_cycle, share=0.25), 40))
    spec = OptimizerSpec(decay="step", decay_epochs=1.0, decay_factor=0.5)
    assert factors(spec, 4, 3) == theirs(partial(StepLR, step_size=4, gamma=0.5), 12)
    warm = partial(LinearLR, start_factor=1 / 4, total_iters=3)
    assert factors(OptimizerSpec(warm_up=1.0), 4, 2) == pytest.approx(theirs(warm, 8))


def _one_cycle(optimizer: torch.optim.Optimizer, share: float) -> LRScheduler:
    """Of 40 updates; torch's scheduler knows no step behind its last."""
    total = 40
    made = OneCycleLR(optimizer, 1.0, total, pct_start=share, cycle_momentum=False)
    made.total_steps = total + 1
    return made


@given(st.sampled_from(["one-cycle", "inverse-sqrt", "cosine"]), st.integers(0, 4))
def test_a_stage_that_updates_half_as_often_is_as_far(decay: str, warm: int) -> None:
    spec = OptimizerSpec(decay=decay, warm_up_updates=2 * warm)
    each = learning_rate_factor(spec, 20, 40, stride=2.0)
    half = learning_rate_factor(replace(spec, warm_up_updates=warm), 10, 20)
    if decay != "inverse-sqrt" or warm:
        assert [each(k) for k in range(20)] == pytest.approx([half(k) for k in range(20)])


def test_the_end_is_the_last_epoch_or_the_most_updates() -> None:
    plan = Plan("t", Partition((Stage(0, 1, (0,)),)), "gpipe", 4)
    spec = TrainSpec(1, plan, epochs=3)
    assert num_scheduled(spec, 7) == 21
    assert num_scheduled(replace(spec, stop=StopSpec(updates=12)), 7) == 12
    assert num_scheduled(replace(spec, stop=StopSpec(updates=99)), 7) == 21
