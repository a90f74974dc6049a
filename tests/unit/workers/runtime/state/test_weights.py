"""Versions come and go; gradients add up in place."""

import torch

from backend.runs.request.optimizer_spec import OptimizerSpec
from tests.unit.workers.runtime.state.adding import add
from workers.runtime.state.grouped import optimizer_of
from workers.runtime.state.weights import Weights


def weights() -> Weights:
    return Weights({"w": torch.zeros(2)}, optimizer_of(OptimizerSpec("sgd", learning_rate=1.0)))


def gradient(value: float) -> dict[str, torch.Tensor]:
    return {"w": torch.full((2,), value)}


def test_awaited_versions_stay_and_the_others_go() -> None:
    held = weights()
    for version in (1, 2, 3):
        add(held, gradient(1.0))
        held.step(version, 1, awaited=lambda v: v in (0, 2))
    assert held.kept == (0, 2, 3)
    assert [float(held.at(v)["w"].detach()[0]) for v in held.kept] == [0.0, -2.0, -3.0]


def test_in_place_only_where_nobody_awaits_the_newest() -> None:
    held = weights()
    first = held.newest["w"]
    add(held, gradient(1.0))
    held.step(1, 1, awaited=lambda v: False)
    assert held.newest["w"] is first
    add(held, gradient(1.0))
    held.step(2, 1, awaited=lambda v: v == 1)
    assert held.newest["w"] is not first
    assert float(first.detach()[0]) == -1.0


def test_every_version_can_be_differentiated() -> None:
    held = weights()
    add(held, gradient(1.0))
    held.step(1, 1, awaited=lambda v: True)
    assert all(held.at(v)["w"].requires_grad and held.at(v)["w"].is_leaf for v in held.kept)


def test_a_segment_begins_with_the_newest_as_version_0() -> None:
    held = weights()
    add(held, gradient(2.0))
    held.step(1, 1, awaited=lambda v: True)
    held.begin()
    assert held.kept == (0,)
    assert float(held.at(0)["w"].detach()[0]) == -2.0


def test_gradients_are_averaged() -> None:
    held = weights()
    for value in (1.0, 2.0, 6.0):
        add(held, gradient(value))
    assert float(held.gradients[0][0]) == 9.0
    held.step(1, 3, awaited=lambda v: False)
    assert float(held.newest["w"].detach()[0]) == -3.0


def test_a_replica_without_a_microbatch_adds_zeros() -> None:
    held = weights()
    assert torch.equal(held.gradients[0], torch.zeros(2))
    held.step(1, 1, awaited=lambda v: False)
    assert float(held.newest["w"].detach()[0]) == 0.0


def test_a_stage_without_parameters_steps_too() -> None:
    held = Weights({}, optimizer_of(OptimizerSpec("adam")))
    add(held, {})
    held.step(1, 1, awaited=lambda v: True)
    assert held.newest == {}


def test_the_given_tensors_are_version_0_and_are_held_once() -> None:
    own = torch.zeros(2)
    held = Weights({"w": own}, optimizer_of(OptimizerSpec("sgd", 1.0)))
    assert held.at(0)["w"].data_ptr() == own.data_ptr()
    add(held, gradient(1.0))
    held.step(1, 1, awaited=lambda v: True)
    assert torch.equal(own.detach(), torch.zeros(2))  # a backward still awaits it
    assert float(held.newest["w"].detach()[0]) == -1.0


def test_without_a_stash_a_step_changes_what_live_graphs_read() -> None:
    held = Weights({"w": torch.ones(2)}, optimizer_of(OptimizerSpec("sgd", 1.0)), stash=False)
    leaf = held.at(0)["w"]
    output = (leaf * leaf).sum()
    add(held, gradient(-2.0))
    held.step(1, 1, awaited=lambda v: True)
    assert held.at(7)["w"] is leaf
    assert float(torch.autograd.grad(output, leaf)[0][0]) == 6.0


def test_sums_begin_anew_with_each_update() -> None:
    held = weights()
    assert held.sums == []
    add(held, gradient(1.0))
    held.sums[0].add_(2.0)
    held.step(1, 1, awaited=lambda v: False)
    assert float(held.newest["w"].detach()[0]) == -3.0
    assert held.sums == []
