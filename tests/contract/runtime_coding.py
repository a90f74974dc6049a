"""Codecs in the sequential reference: what cuts do to what crosses them."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from backend.pipeline.actions import Flow
from workers.definitions.tracing.record import TensorSpec
from workers.runtime.messages.codecs.blocks import BlockCoder, FewBits
from workers.runtime.messages.codecs.catalog import ROUND_TRIPS
from workers.runtime.messages.codecs.coder import RoundTrip


class Coded(torch.autograd.Function):
    """What a cut with a codec does to activations and to their gradients, as if it were a layer
    that hands both straight on."""

    @staticmethod
    def forward(ctx, value: Tensor, name: str) -> Tensor:
        ctx.round_trip = ROUND_TRIPS[name]()
        return read_again(ctx.round_trip, Flow.ACTIVATION, value)

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None]:
        return read_again(ctx.round_trip, Flow.GRADIENT, gradient), None


STEPS = {"aq4": BlockCoder(FewBits(4)), "aq2": BlockCoder(FewBits(2))}
"""Q of the codecs that keep samples."""


class Changed(torch.autograd.Function):
    """The same of a codec that sends what has changed: `kept` is what was read of each sample."""

    @staticmethod
    def forward(
        ctx, value: Tensor, name: str, kept: dict[int, Tensor], samples: Sequence[int]
    ) -> Tensor:
        ctx.name, read = name, value.clone()
        known = [place for place, sample in enumerate(samples) if sample in kept]
        if known:
            last = torch.stack([kept[samples[place]] for place in known])
            change = value[known] - last
            coded = STEPS[name].encode(change)
            read[known] = last + STEPS[name].decode(coded, TensorSpec.of(change))
        kept.update(zip(samples, read.clone(), strict=True))
        return read

    @staticmethod
    def backward(ctx, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        return read_again(ROUND_TRIPS[ctx.name](), Flow.GRADIENT, gradient), None, None, None


def read_again(round_trip: RoundTrip, flow: Flow, tensor: Tensor) -> Tensor:
    coder = round_trip.of(flow)
    return coder.decode(coder.encode(tensor), TensorSpec.of(tensor))


def residual(model: nn.Module, cut: Callable[..., tuple[Tensor, ...]], x: Tensor) -> Tensor:
    """The residual model; `cut` takes the number of a layer and all that is alive in front of it,
    and gives what the layer's stage reads."""
    (x,) = cut(1, model.a(x))
    x = torch.tanh(x)
    x, y = cut(3, x, model.b(x))
    x, y = cut(5, x, model.c(torch.tanh(y)))
    return model.d(torch.tanh(x + y * model.scale))
