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
        blocks = _blocks(tensor.flatten().to(exact_dtype(tensor.dtype)))
        low, high = torch.aminmax(blocks, dim=1)
        largest = torch.maximum(-low, high).float().clamp_min_(LEAST)
        numbers = blocks * (self.small.most / largest.to(blocks.dtype)).unsqueeze(1)
        packed = self.small.pack(numbers.flatten()[: tensor.numel()])
        return torch.cat((largest.view(torch.uint8), packed))

    def decode(self, coded: Tensor, spec: TensorSpec) -> Tensor:
        count = torch.Size(spec.shape).numel()
        size, exact = scale_bytes(count), exact_dtype(spec.dtype)
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


@dataclass(frozen=True, slots=True)
class FewBits:
    """Whole numbers of 4 or 2 bits, the earlier ones in the upper bits: off by half of s over
    their most, s / 14 or s / 2."""

    bits: int

    @property
    def most(self) -> float:
        return float(self._zero - 1)

    @property
    def _zero(self) -> int:
        """What 0 is packed as, so that no number has a sign."""
        return 1 << (self.bits - 1)

    @property
    def _shifts(self) -> range:
        """Of the numbers in a byte."""
        return range(8 - self.bits, -1, -self.bits)

    def pack(self, numbers: Tensor) -> Tensor:
        whole = numbers.round_().add_(self._zero).to(torch.uint8)
        in_byte = len(self._shifts)
        each = torch.nn.functional.pad(whole, (0, -len(whole) % in_byte)).view(-1, in_byte)
        packed = each[:, -1].clone()
        for place, shift in enumerate(self._shifts[:-1]):
            packed |= each[:, place] << shift
        return packed

    def unpack(self, packed: Tensor, count: int, dtype: torch.dtype) -> Tensor:
        least = (1 << self.bits) - 1
        each = torch.stack([(packed >> shift) & least for shift in self._shifts], dim=1)
        return each.flatten()[:count].to(dtype) - self._zero


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


def exact_dtype(dtype: torch.dtype) -> torch.dtype:
    """In which tensors of `dtype` are reckoned with: float32 at least."""
    return dtype if dtype.itemsize >= SCALE else torch.float32


def _blocks(flat: Tensor) -> Tensor:
    """In rows of `BLOCK`, the last one filled up with zeros."""
    missing = -len(flat) % BLOCK
    return torch.nn.functional.pad(flat, (0, missing)).view(-1, BLOCK)
