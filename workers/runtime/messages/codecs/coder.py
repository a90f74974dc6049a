"""What a codec does to one tensor of a message."""

from typing import Protocol

import torch
from torch import Tensor

from workers.definitions.tracing.record import TensorSpec


class Coder(Protocol):
    """For one flow of a codec of `backend.pipeline.codecs`, which says the bytes.

    What it reads again is the same at both ends, to the last bit, and keeps infinity and NaN, so
    that a loss that is no number is seen.
    """

    def encode(self, tensor: Tensor) -> Tensor:
        """The bytes (uint8, one dimension) of a floating-point tensor."""
        ...

    def decode(self, coded: Tensor, spec: TensorSpec) -> Tensor:
        """The tensor of these bytes, in the shape and dtype of `spec`."""
        ...


def as_bytes(tensor: Tensor) -> Tensor:
    """The same storage as bytes."""
    return tensor.contiguous().flatten().view(torch.uint8)
