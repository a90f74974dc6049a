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

    def __hash__(self) -> int:
        """Coders that are equal code alike."""
        ...


class RoundTrip(Protocol):
    """At one end of a cut: a tensor of one microbatch there, and its gradient back. It may remember
    of the first what it needs for the second."""

    def of(self, flow: Flow) -> Coder:
        """Of activations before that of their gradients, which is known once they are coded or
        read."""
        ...


class Past(Protocol):
    """What one end of a cut knows of a tensor's samples before they pass again; the other end knows
    the same."""

    def before(self, spec: TensorSpec, device: torch.device) -> tuple[Tensor, Tensor]:
        """Which rows of a tensor of this spec belong to samples that have passed (bool, one
        dimension), and what was read of those last: rows of its numbers, in its dtype."""
        ...

    def after(self, read: Tensor) -> None:
        """Remember the rows that are read now."""
        ...


class AllZero:
    """Every sample has passed, and all that was read of it is 0. Nothing is remembered."""

    def before(self, spec: TensorSpec, device: torch.device) -> tuple[Tensor, Tensor]:
        numbers = numbers_of(spec)
        zeros = torch.zeros(numbers.rows, numbers.per_row, dtype=spec.dtype, device=device)
        return torch.ones(numbers.rows, dtype=torch.bool, device=device), zeros

    def after(self, read: Tensor) -> None: ...


ALL_ZERO = AllZero()


class Begin(Protocol):
    """How a codec begins with a tensor of one microbatch, of whose samples so much is known."""

    def __call__(self, past: Past = ALL_ZERO) -> RoundTrip: ...


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
