"""Blocks of bytes, with the largest number of each in front of all.

| largest of block 0 .. n - 1, float32 | numbers of block 0 .. n - 1, int8 |
"""

import torch
from torch import Tensor

from backend.pipeline.codecs.int8 import BLOCK, SCALE
from workers.definitions.tracing.record import TensorSpec

STEPS = 127
"""On either side of 0."""
LEAST = 1e-30
"""A block whose largest number is smaller counts as if it were this, for 0 divides nothing."""


class Int8Coder:
    """x -> round(127 x / s), s = max |x| of the block: off by s / 254 at most."""

    def encode(self, tensor: Tensor) -> Tensor:
        blocks = _blocks(tensor.flatten().to(_exact(tensor.dtype)))
        low, high = torch.aminmax(blocks, dim=1)
        largest = torch.maximum(-low, high).float().clamp_min_(LEAST)
        count, size = tensor.numel(), SCALE * len(blocks)
        coded = torch.empty(size + count, dtype=torch.uint8, device=tensor.device)
        coded[:size].view(torch.float32).copy_(largest)
        steps = blocks * (STEPS / largest.to(blocks.dtype)).unsqueeze(1)
        coded[size:].view(torch.int8).copy_(steps.round_().flatten()[:count])
        return coded

    def decode(self, coded: Tensor, spec: TensorSpec) -> Tensor:
        count = torch.Size(spec.shape).numel()
        size = SCALE * -(-count // BLOCK)
        exact = _exact(spec.dtype)
        blocks = _blocks(coded[size:].view(torch.int8).to(exact))
        scales = coded[:size].view(torch.float32).to(exact) / STEPS
        numbers = (blocks * scales.unsqueeze(1)).flatten()[:count]
        return numbers.view(spec.shape).to(spec.dtype)


def _exact(dtype: torch.dtype) -> torch.dtype:
    """In which is reckoned: float32 at least."""
    return dtype if dtype.itemsize >= SCALE else torch.float32


def _blocks(flat: Tensor) -> Tensor:
    """In rows of `BLOCK`, the last one filled up with zeros."""
    missing = -len(flat) % BLOCK
    return torch.nn.functional.pad(flat, (0, missing)).view(-1, BLOCK)
