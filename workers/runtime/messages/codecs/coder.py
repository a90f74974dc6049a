"""What a codec does to one tensor of a message."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from backend.pipeline.actions import Flow
from backend.pipeline.codecs.codec import Numbers
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


class RoundTrip(Protocol):
    """At one end of a cut: a tensor of one microbatch there, and its gradient back. It may remember
    of the first what it needs for the second."""

    def of(self, flow: Flow) -> Coder:
        """Of activations before that of their gradients, which is known once they are coded or
        read."""
        ...


@dataclass(frozen=True, slots=True)
class Apart:
    """Gradients are coded whatever the activations were."""

    activation: Coder
    gradient: Coder

    def of(self, flow: Flow) -> Coder:
        return self.activation if flow is Flow.ACTIVATION else self.gradient


def numbers_of(spec: TensorSpec) -> Numbers:
    """What a codec's bytes depend on."""
    return Numbers(torch.Size(spec.shape).numel(), spec.dtype.itemsize, spec.num_rows)


def as_bytes(tensor: Tensor) -> Tensor:
    """The same storage as bytes."""
    return tensor.contiguous().flatten().view(torch.uint8)
