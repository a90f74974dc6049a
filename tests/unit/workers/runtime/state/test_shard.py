"""Replicas that share their state end with the bits of one that keeps all of it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
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
from tests.unit.workers.runtime.thread_group import Meeting, ThreadGroup
from workers.runtime.messages.gradient_buckets import Buckets
from workers.runtime.state.exchanges.elastic import Elastic
from workers.runtime.state.grouped import optimizer_of
from workers.runtime.state.moving_average import AVERAGE, MovingAverage
from workers.runtime.state.rounding import RoundedUpdates, masters, rounded
from workers.runtime.state.shard import Shard
from workers.runtime.state.weights import Weights

SHAPES = {"matrix": (24, 17), "bias": (5,), "table": (70, 9), "scale": ()}


@dataclass
class SummedGroup(ThreadGroup):
    """All have the sum of the gradients already: it adds nothing."""

    timing: None = None

    def sum_later(self, flat: torch.Tensor) -> "SummedGroup":
        return self

    def wait(self) -> None:
        """It is done."""

    def gather(self, flat: torch.Tensor) -> None:
        parts = flat.chunk(self.meeting.size)
        for part, told in zip(parts, self.tell(parts[self.place].clone()), strict=True):
            part.copy_(told)


def first(seed: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.randn(shape, generator=generator) for name, shape in SHAPES.items()}


def held(
    name: str,
    optimizer: str,
    group: SummedGroup | None = None,
    average: float = 0.0,
    exchange: Elastic | None = None,
) -> Weights:
    """Weights as a rank has them, sharded where there is a group."""
    kind, given_first = STATE_PRECISIONS[name], first(0)
    rule = partial(optimizer_of, OptimizerSpec(optimizer, 0.05, weight_decay=0.1))
    kept = rounded(given_first, kind)
    buckets = Buckets(kept, group) if group else None
    return Weights(
        kept,
        RoundedUpdates(rule, kind) if kind.is_rounded else rule(),
        buckets,
        masters=masters(given_first, kind),
        shard=Shard(buckets) if buckets else None,
        moving=MovingAverage(average) if average else None,
        exchange=exchange,
    )


def train(weights: Weights, steps: list[bool], begin: int = 0) -> Weights:
    """A step with the same gradients for everybody, beside the old version or in place."""
    for step, is_awaited in enumerate(steps, begin):
        found = {n: g.to(weights.newest[n].dtype) for n, g in first(1000 + step).items()}
        add(weights, found)
        if weights.buckets is not None:
            weights.buckets.reduce(0.0)
        weights.step(step + 1, 3, lambda version, is_awaited=is_awaited: is_awaited)
    return weights


def replicas(size: int, work: Callable[[SummedGroup], Weights]) -> list[Weights]:
    """What each of so many replicas makes of its group."""
    meeting = Meeting(size)
    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(work, [SummedGroup(place, meeting) for place in range(size)]))


def whole(each: list[Weights], tensors_of: Callable[[Weights], list[torch.Tensor]]):
    """Tensors by name, put together from what the replicas keep; every number is kept once."""
    found = {name: torch.full(shape, torch.nan).view(-1) for name, shape in SHAPES.items()}
    for weights in each:
        for part, tensor in zip(weights.slices, tensors_of(weights), strict=True):
            place = found[part.name][part.first : part.stop]
            assert place.isnan().all()
            place.copy_(tensor.reshape(-1))
    assert not any(tensor.isnan().any() for tensor in found.values())
    return {name: tensor.view(SHAPES[name]) for name, tensor in found.items()}


@pytest.mark.parametrize("optimizer", [n for n, o in OPTIMIZERS.items() if o.is_elementwise])
@pytest.mark.parametrize("name", STATE_PRECISIONS)
@settings(max_examples=6)
@given(size=st.integers(2, 4), steps=st.lists(st.booleans(), min_size=1, max_size=4))
def test_weights_and_state_are_those_without_sharding_to_the_last_bit(name, optimizer, size, steps):
    alone = train(held(name, optimizer), steps)
    shared = replicas(size, lambda group: train(held(name, optimizer, group), steps))
    for weights in shared:
        assert weights.kept == alone.kept
        for version in alone.kept:
            mine, other = weights.at(version), alone.at(version)
            assert all(torch.equal(mine[n], other[n]) for n in SHAPES)
            assert all(weight.requires_grad and weight.is_leaf for weight in mine.values())
    for kind, tensors in alone.optimizer_state.items():
        found = whole(shared, lambda weights, kind=kind: weights.optimizer_state[kind])
        for tensor, part in zip(tensors, alone.slices, strict=True):
            assert torch.equal(found[part.name].to(tensor.dtype), tensor)
    if alone.masters is not None:
        found = whole(shared, lambda weights: weights.masters)
        assert all(torch.equal(found[name], alone.exact[name]) for name in SHAPES)


@pytest.mark.parametrize("name", ["float32", "bfloat16-masters"])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_each_replica_keeps_its_part_of_the_bytes_and_no_more(name, size):
    def kept(weights: Weights) -> int:
        """Bytes of the storages, not of the views on them."""
        tensors = [t for kind in weights.optimizer_state.values() for t in kind]
        return sum(t.untyped_storage().nbytes() for t in [*tensors, *(weights.masters or [])])

    alone = kept(train(held(name, "adam"), [False]))
    shared = replicas(size, lambda group: train(held(name, "adam", group), [False]))
    bytes_ = list(map(kept, shared))
    assert sum(bytes_) == alone
    assert max(bytes_) <= alone / size + 3 * 4 * 64 * len(SHAPES)


@pytest.mark.parametrize("name", ["float32", "bfloat16-masters", "bfloat16"])
def test_parallel_pipelines_are_averaged_as_without_sharding(name):
    def averaged(weights: Weights) -> Weights:
        train(weights, [False])
        weights.exchange(Still())
        return train(weights, [False], begin=1)

    def made(group: SummedGroup | None = None) -> Weights:
        return averaged(held(name, "adam", group, exchange=Elastic(0.5)))

    alone = made()
    for weights in replicas(3, made):
        for tensors in ("newest", "evaluated"):
            mine, other = getattr(weights, tensors), getattr(alone, tensors)
            assert all(torch.equal(mine[n], other[n]) for n in SHAPES)
        mine, other = (each.exchange_state["reference"] for each in (weights, alone))
        assert all(torch.equal(mine[n], other[n]) for n in SHAPES)


@pytest.mark.parametrize("name", ["float32", "bfloat16-masters-state16", "bfloat16-state32"])
@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (3, 2), (2, 2)])
def test_another_number_of_replicas_goes_on_to_the_last_bit(name, before, after):
    def made(group: SummedGroup) -> Weights:
        return held(name, "adam", group if group.meeting.size > 1 else None)

    def resumed(group: SummedGroup) -> Weights:
        weights = made(group)
        state = {
            kind: [part.copied(tensors[part.name]) for part in weights.slices]
            for kind, tensors in kept.items()
        }
        weights.restore(exact, state, 3)
        return train(weights, [True, False], begin=3)

    expected = train(held(name, "adam"), [True, False, True, True, False])
    saved = replicas(before, lambda group: train(made(group), [True, False, True]))
    kept = {
        kind: whole(saved, lambda weights, kind=kind: weights.optimizer_state[kind])
        for kind in saved[0].optimizer_state
    }
    exact = {name: weight.detach() for name, weight in saved[0].newest.items()}
    if saved[0].masters is not None:
        exact = whole(saved, lambda weights: weights.masters)
    for weights in replicas(after, resumed):
        assert all(torch.equal(weights.newest[n], expected.newest[n]) for n in SHAPES)


@pytest.mark.parametrize("name", ["float32", "bfloat16-masters-state16", "bfloat16"])
def test_the_average_of_the_weights_is_put_together_from_its_parts(name):
    """It is in float32, whatever the weights are in, and goes on from its state."""
    steps = [True, False, True]
    alone = train(held(name, "adam", average=0.75), steps)
    wanted = {n: weight.clone() for n, weight in alone.evaluated.items()}
    values = alone.optimizer_state[AVERAGE]
    assert {value.dtype for value in values} == {torch.float32}
    assert not torch.equal(wanted["matrix"], alone.newest["matrix"])

    def evaluated(group: SummedGroup) -> dict[str, torch.Tensor]:
        return train(held(name, "adam", group, average=0.75), steps).evaluated

    for found in replicas(3, evaluated):
        assert all(torch.equal(found[n], wanted[n]) for n in SHAPES)
    other = held(name, "adam", average=0.75)
    state = {kind: [t.clone() for t in kept] for kind, kept in alone.optimizer_state.items()}
    other.restore({n: w.detach() for n, w in alone.exact.items()}, state, len(steps))
    for each in (alone, other):
        train(each, [False], begin=3)
    assert all(torch.equal(alone.evaluated[n], other.evaluated[n]) for n in SHAPES)
