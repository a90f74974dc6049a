"""Buckets add up like plain sums, whether gradients travelled early or not."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

from workers.definitions.tracing.record import TensorSpec
from workers.profiler.allocations import allocations
from workers.runtime.compute.stage import Activations, StageModule
from workers.runtime.messages import gradient_buckets as module
from workers.runtime.messages.gradient_buckets import Buckets
from workers.runtime.messages.world import Group

SHAPES = {"a": (3, 2), "b": (4,), "c": (5, 5)}
SIZES = [1, 60, 10_000]


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Group]:
    """A real group of this process alone: its sums are its own values."""
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield Group((0,), dist.group.WORLD)
    dist.destroy_process_group()


def weights() -> dict[str, Tensor]:
    return {name: torch.rand(shape).requires_grad_() for name, shape in SHAPES.items()}


def backward(buckets: Buckets, held: Mapping[str, Tensor], is_last: bool = False) -> None:
    """Add d(sum of squares) = 2 w of these weights of the stage, as a stage does."""
    every = buckets.sums or [None] * len(buckets.gradients)
    for weight, so_far in zip(held.values(), every, strict=False):
        weight.grad = so_far
    with buckets.filling(held, is_last):
        sum((weight * weight).sum() for weight in held.values()).backward()
    buckets.sums = [weight.grad for weight in held.values()]
    for weight in held.values():
        weight.grad = None


@pytest.mark.parametrize("size", SIZES)
def test_sums_and_the_loss(group: Group, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(module, "BUCKET_BYTES", size)
    held = weights()
    buckets = Buckets(held, group)
    for _ in range(2):  # the second update begins from nothing
        assert buckets.sums == []
        backward(buckets, held)
        backward(buckets, held, is_last=True)
        assert buckets.reduce(1.5) == 1.5
        for gradient, weight in zip(buckets.gradients, held.values(), strict=True):
            assert torch.equal(gradient, 4 * weight.detach())


@pytest.mark.parametrize("before", [0, 1])
def test_full_buckets_travel_within_the_last_backward(
    group: Group, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    """All but the last one, which has room for the loss; what is sent is whole."""
    monkeypatch.setattr(module, "BUCKET_BYTES", 1)
    held, sent = weights(), []
    buckets = Buckets(held, group)
    sum_later = Group.sum_later
    monkeypatch.setattr(
        Group, "sum_later", lambda self, flat: (sent.append(flat.clone()), sum_later(self, flat))[1]
    )
    for _ in range(before):
        backward(buckets, held)
    assert sent == []
    backward(buckets, held, is_last=True)
    assert len(sent) == len(held) - 1
    for flat, weight in zip(sent, reversed(held.values()), strict=False):
        whole = (before + 1) * 2 * weight.detach().flatten()
        assert torch.equal(flat[: weight.numel()], whole)
    buckets.reduce(0.0)
    assert len(sent) == len(held)


def test_a_replica_without_a_backward_adds_nothing(group: Group) -> None:
    buckets = Buckets(weights(), group)
    backward(buckets, weights())
    buckets.reduce(0.0)
    assert buckets.reduce(2.0) == 2.0
    assert all(not gradient.any() for gradient in buckets.gradients)


def test_a_stage_without_weights_still_reduces_its_loss(group: Group) -> None:
    buckets = Buckets({}, group)
    assert buckets.gradients == []
    assert buckets.reduce(3.0) == 3.0


@pytest.mark.parametrize("size", SIZES)
def test_gradients_of_two_dtypes_and_a_loss_with_all_its_digits(
    group: Group, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Matrices in bfloat16 between vectors in float32, as a training has them."""
    monkeypatch.setattr(module, "BUCKET_BYTES", size)
    held = {
        f"{n}.{name}": torch.rand(shape).to(dtype).requires_grad_()
        for n in range(3)
        for name, shape, dtype in (("w", (5, 4), torch.bfloat16), ("b", (4,), torch.float32))
    }
    buckets, loss = Buckets(held, group), float(torch.tensor(1 / 3))
    backward(buckets, held, is_last=True)
    assert buckets.reduce(loss) == loss
    for gradient, weight in zip(buckets.gradients, held.values(), strict=True):
        assert gradient.dtype == weight.dtype
        assert torch.equal(gradient, 2 * weight.detach())


class Sometimes(nn.Module):
    """Words with sparse gradients, and a weight that is read of long inputs alone."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(9, 3, sparse=True)
        self.late = nn.Parameter(torch.rand(3))

    def forward(self, words: Tensor) -> tuple[Tensor, ...]:
        found = self.words(words)
        return (found * self.late if len(words) > 2 else found * 1,)


@pytest.mark.parametrize("is_last", [False, True])
@pytest.mark.parametrize("halves", [False, True])
def test_sparse_gradients_and_weights_that_are_not_read(
    group: Group, monkeypatch: pytest.MonkeyPatch, is_last: bool, halves: bool
) -> None:
    """In any order of microbatches; nothing is left of the update before."""
    monkeypatch.setattr(module, "BUCKET_BYTES", 1)
    stage = StageModule(Sometimes(), (TensorSpec((2,), torch.int64, False),))
    held = {name: weight.requires_grad_() for name, weight in stage.weights.items()}
    buckets = Buckets(held, group)
    for lengths in ((3,), (2,), (2, 3), (3, 2), (2, 2)):
        expected = [torch.zeros_like(weight) for weight in held.values()]
        for place, length in enumerate(lengths):
            words = torch.arange(length)
            (output,), kept = stage.forward((words,), held, None)
            coming = (torch.rand_like(output),)
            for so_far, more in zip(
                expected, stage.backward(kept, coming)[1].values(), strict=True
            ):
                so_far.add_(more)
            _, kept = stage.forward((words,), held, None)
            with buckets.filling(held, is_last and place == len(lengths) - 1):
                if halves:
                    stage.backward_input(kept, coming)
                    found = stage.backward_weight(kept, buckets.sums).values()
                else:
                    found = stage.backward_onto(kept, coming, buckets.sums)[1]
                buckets.sums = list(found)
        buckets.reduce(0.0)
        assert all(map(torch.equal, buckets.gradients, expected))


class Tower(nn.Sequential):
    """Hands on a bundle."""

    def forward(self, value: Tensor) -> tuple[Tensor, ...]:
        return (super().forward(value),)


def test_gradients_of_all_weights_are_never_there_at_once(group: Group) -> None:
    """Six layers of 64 KiB: a backward has one of their gradients at a time, be it the first of an
    update or one that adds to it."""
    side, layers = 128, 6
    body = Tower(*(nn.Linear(side, side, bias=False) for _ in range(layers)))
    stage = StageModule(body, (TensorSpec((4, side), torch.float32, True),))
    held = {name: weight.requires_grad_() for name, weight in stage.weights.items()}
    buckets = Buckets(held, group)

    def work(kept: Activations, coming: Tensor) -> None:
        with buckets.filling(held, is_last=False):
            _, buckets.sums = stage.backward_onto(kept, (coming,), buckets.sums)

    with allocations(torch.device("cpu")) as allocated:
        for _ in range(2):
            (output,), kept = stage.forward((torch.rand(4, side),), held, None)
            allocated.during(partial(work, kept, torch.rand_like(output)))
    assert all(piece.most < 2 * 4 * side * side for piece in allocated.pieces)
