"""Numbers in blocks, with the largest of each block in front of all.

| largest of block 0 .. n - 1, float32 | numbers of block 0 .. n - 1, as `SmallNumbers` packs them |
"""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from backend.pipeline.codecs.blocks import BLOCK, SCALE, scale_bytes
from workers.definitions.tracing.record import TensorSpec

LEAST = 1e-30
"""A block whose largest number is smaller counts as if it were this, for 0 divides nothing."""


class SmallNumbers(Protocol):
    """What numbers from -most to most are rounded to."""

    @property
    def most(self) -> float: ...

    def pack(self, numbers: Tensor) -> Tensor:
        """Bytes of numbers of one dimension, which it may change."""
        ...

    def unpack(self, packed: Tensor, count: int, dtype: torch.dtype) -> Tensor:
        """So many numbers, as they are after rounding."""
        ...


@dataclass(frozen=True, slots=True)
class BlockCoder:
    """x -> the step next to most x / s, s = max |x| of the block. A block with infinity or NaN is
    read as NaN: its scale is no number either."""

    small: SmallNumbers

    def encode(self, tensor: Tensor) -> Tensor:
        blocks = _blocks(tensor.flatten().to(_exact(tensor.dtype)))
        low, high = torch.aminmax(blocks, dim=1)
        largest = torch.maximum(-low, high).float().clamp_min_(LEAST)
        numbers = blocks * (self.small.most / largest.to(blocks.dtype)).unsqueeze(1)
        packed = self.small.pack(numbers.flatten()[: tensor.numel()])
        return torch.cat((largest.view(torch.uint8), packed))

    def decode(self, coded: Tensor, spec: TensorSpec) -> Tensor:
        count = torch.Size(spec.shape).numel()
        size, exact = scale_bytes(count), _exact(spec.dtype)
        blocks = _blocks(self.small.unpack(coded[size:], count, exact))
        scales = coded[:size].view(torch.float32).to(exact) / self.small.most
        numbers = (blocks * scales.unsqueeze(1)).flatten()[:count]
        return numbers.view(spec.shape).to(spec.dtype)


class Bytes:
    """Whole numbers of a byte: off by s / 254 at most."""

    most = 127.0

    def pack(self, numbers: Tensor) -> Tensor:
        return numbers.round_().to(torch.int8).view(torch.uint8)

    def unpack(self, packed: Tensor, count: int, dtype: torch.dtype) -> Tensor:
        return packed.view(torch.int8).to(dtype)


class HalfBytes:
    """Whole numbers of half a byte, the earlier one in the upper half: off by s / 14 at most."""

    most = 7.0
    zero = 8
    """What 0 is packed as, so that no half has a sign."""

    def pack(self, numbers: Tensor) -> Tensor:
        whole = numbers.round_().add_(self.zero).to(torch.uint8)
        pairs = torch.nn.functional.pad(whole, (0, len(whole) % 2)).view(-1, 2)
        return (pairs[:, 0] << 4) | pairs[:, 1]

    def unpack(self, packed: Tensor, count: int, dtype: torch.dtype) -> Tensor:
        pairs = torch.stack((packed >> 4, packed & 15), dim=1)
        return pairs.flatten()[:count].to(dtype) - self.zero


@dataclass(frozen=True, slots=True)
class Floats:
    """Numbers of a type of 8 bits: off by a share of themselves, 1/16 of E4M3 and 1/8 of E5M2,
    but for those so small that the type has fewer digits."""

    dtype: torch.dtype

    @property
    def most(self) -> float:
        return torch.finfo(self.dtype).max

    def pack(self, numbers: Tensor) -> Tensor:
        return numbers.to(self.dtype).view(torch.uint8)

    def unpack(self, packed: Tensor, count: int, dtype: torch.dtype) -> Tensor:
        return packed.view(self.dtype).to(dtype)


def _exact(dtype: torch.dtype) -> torch.dtype:
    """In which is reckoned: float32 at least."""
    return dtype if dtype.itemsize >= SCALE else torch.float32


def _blocks(flat: Tensor) -> Tensor:
    """In rows of `BLOCK`, the last one filled up with zeros."""
    missing = -len(flat) % BLOCK
    return torch.nn.functional.pad(flat, (0, missing)).view(-1, BLOCK)
