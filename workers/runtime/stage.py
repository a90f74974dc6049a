"""A stage of the model as two functions: forward with given weights, and its backward."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from workers.definitions.loader import Loss
from workers.definitions.record import TensorSpec

Tensors = tuple[Tensor, ...]


@dataclass(frozen=True, slots=True)
class Held:
    """What the backward needs of its forward; autograd keeps that version's weights alive."""

    inputs: Tensors
    weights: dict[str, Tensor]
    outputs: Tensors


@dataclass(frozen=True, slots=True)
class Stage:
    """`specs` describe the bundle that comes in; `loss` is set on the last stage alone."""

    module: nn.Module
    specs: tuple[TensorSpec, ...]
    loss: Loss | None = None

    @property
    def weights(self) -> dict[str, Tensor]:
        """The trained parameters of the module, by the model's names."""
        return {n: p.detach() for n, p in self.module.named_parameters() if p.requires_grad}

    def run(self, inputs: Tensors, weights: Mapping[str, Tensor]) -> Any:
        """The bundle that goes out, or the model's output on the last stage."""
        return functional_call(self.module, dict(weights), inputs)

    def forward(
        self, inputs: Tensors, weights: dict[str, Tensor], target: Tensor | None
    ) -> tuple[Tensors, Held]:
        """The bundle that goes out (the loss alone on the last stage), and what to hold."""
        for tensor, spec in zip(inputs, self.specs, strict=True):
            tensor.requires_grad_(spec.requires_grad)
        result = self.run(inputs, weights)
        if self.loss is not None and target is not None:
            result = (self.loss(result, target),)
        return result, Held(_differentiable(inputs), weights, _differentiable(result))

    def backward(self, held: Held, gradients: Tensors) -> tuple[Tensors, dict[str, Tensor]]:
        """(gradients of the inputs that have one, gradients of the weights).

        `gradients` belong to the outputs that have one; on the last stage there are none.
        """
        wanted = (*held.inputs, *held.weights.values())
        found = self._grad(held, wanted, gradients)
        num_inputs = len(held.inputs)
        of_weights = zip(held.weights, found[num_inputs:], strict=True)
        return tuple(found[:num_inputs]), dict(of_weights)

    def backward_input(self, held: Held, gradients: Tensors) -> Tensors:
        """The gradients of the inputs alone; the graph stays for `backward_weight`."""
        return tuple(self._grad(held, held.inputs, gradients, keep=True))

    def backward_weight(self, held: Held, gradients: Tensors) -> dict[str, Tensor]:
        """The gradients of the weights alone."""
        weights = tuple(held.weights.values())
        return dict(zip(held.weights, self._grad(held, weights, gradients), strict=True))

    def _grad(
        self, held: Held, wanted: Tensors, gradients: Tensors, keep: bool = False
    ) -> list[Tensor]:
        """One gradient per wanted tensor: zeros where the outputs do not depend on it."""
        if not wanted or not held.outputs:
            return [torch.zeros_like(tensor) for tensor in wanted]
        found = torch.autograd.grad(
            held.outputs,
            wanted,
            gradients if self.loss is None else None,
            retain_graph=keep,
            allow_unused=True,
        )
        return [
            torch.zeros_like(tensor) if gradient is None else gradient
            for tensor, gradient in zip(wanted, found, strict=True)
        ]


def _differentiable(tensors: Sequence[Tensor]) -> Tensors:
    return tuple(tensor for tensor in tensors if tensor.requires_grad)
