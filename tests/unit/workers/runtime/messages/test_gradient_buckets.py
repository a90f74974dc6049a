"""Buckets add up like plain sums, whether gradients travelled early or not."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from workers.runtime.messages import gradient_buckets as module
from workers.runtime.messages.gradient_buckets import Buckets
from workers.runtime.messages.world import Group

SHAPES = {"a": (3, 2), "b": (4,), "c": (5, 5)}


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Group]:
    """A real group of this process alone: its sums are its own values."""
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield Group((0,), dist.group.WORLD)
    dist.destroy_process_group()


def weights() -> dict[str, torch.Tensor]:
    return {name: torch.rand(shape).requires_grad_() for name, shape in SHAPES.items()}


def differentiate(given: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """d(sum of squares) = 2 w; c is met last although it comes last."""
    loss = sum((weight * weight).sum() for weight in given.values())
    return dict(zip(given, torch.autograd.grad(loss, list(given.values())), strict=True))


@pytest.mark.parametrize("size", [1, 60, 10_000])
def test_sums_and_the_loss(group: Group, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(module, "BUCKET_BYTES", size)
    held = weights()
    buckets = Buckets(held, group)
    for _ in range(2):  # the second update begins from nothing
        buckets.add(differentiate(held))
        end = buckets.overlap(held)
        found = differentiate(held)
        end()
        buckets.add(found)
        assert buckets.reduce(1.5) == 1.5
        for gradient, weight in zip(buckets.gradients, held.values(), strict=True):
            assert torch.allclose(gradient, 4 * weight.detach())


def test_a_replica_without_a_backward_adds_nothing(group: Group) -> None:
    buckets = Buckets(weights(), group)
    buckets.add(differentiate(weights()))
    buckets.reduce(0.0)
    assert buckets.reduce(2.0) == 2.0
    assert all(not gradient.any() for gradient in buckets.gradients)


def test_a_stage_without_weights_still_reduces_its_loss(group: Group) -> None:
    buckets = Buckets({}, group)
    assert buckets.gradients == []
    assert buckets.reduce(3.0) == 3.0


@pytest.mark.parametrize("size", [1, 60, 10_000])
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
    end = buckets.overlap(held)
    found = differentiate(held)
    end()
    buckets.add(found)
    assert buckets.reduce(loss) == loss
    for gradient, weight in zip(buckets.gradients, held.values(), strict=True):
        assert gradient.dtype == weight.dtype
        assert torch.equal(gradient, 2 * weight.detach())
