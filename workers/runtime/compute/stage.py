"""A stage of the model as functions: forward with given weights, and its backward."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn

from workers.definitions.loader import Loss
from workers.definitions.module_state.module_state import ModuleState
from workers.definitions.samples import Samples, dense
from workers.definitions.tracing.record import TensorSpec
from workers.runtime.compute.local_heads.local_loss import LocalLoss
from workers.runtime.compute.split_backward import Deferred, backward_input, backward_weight

Tensors = tuple[Tensor, ...]

Precision = Literal["float32", "bfloat16", "float16"]

Places = tuple[tuple[dict[str, nn.Parameter | None], str], ...]
"""Where a module keeps one parameter; several places where it is tied."""


@dataclass(slots=True)
class Activations:
    """What the backward needs of its forward; autograd keeps that version's weights alive.
    `deferred` is what the input's half of a backward leaves for the weights' half; `judged` is
    what a local loss is of: the whole bundle and its answers."""

    inputs: Tensors
    weights: dict[str, Tensor]
    outputs: Tensors
    deferred: Deferred | None = None
    judged: tuple[Tensors, Samples] | None = None


@dataclass(frozen=True, slots=True)
class StageModule:
    """`specs` describe the bundle that comes in; `loss` is set on the last stage alone, and
    `local` on the others where each has a loss of its own, whose head is a part of `module`;
    `precision` is what compute is cast to.

    The module's own parameters are places where a version's tensors are put before it runs.
    """

    module: nn.Module
    specs: tuple[TensorSpec, ...]
    loss: Loss | None = None
    precision: Precision = "float32"
    local: LocalLoss | None = None
    places: dict[str, Places] = field(init=False)
    keeps_state: bool = field(init=False)

    def __post_init__(self) -> None:
        trained = {n: p for n, p in self.module.named_parameters() if p.requires_grad}
        places = {name: _places(self.module, trained[name]) for name in trained}
        object.__setattr__(self, "places", places)
        object.__setattr__(self, "keeps_state", _may_keep_state(self.module))

    @property
    def weights(self) -> dict[str, Tensor]:
        """The trained parameters by the model's names, as they are in the module at present."""
        found = {name: places[0][0][places[0][1]] for name, places in self.places.items()}
        return {name: weight.detach() for name, weight in found.items() if weight is not None}

    @property
    def has_loss(self) -> bool:
        """The model's, or one of its own."""
        return self.loss is not None or self.local is not None

    def run(self, inputs: Tensors, weights: Mapping[str, Tensor]) -> Any:
        """The bundle that goes out, or the model's output on the last stage."""
        self._put(weights)
        with self._cast(inputs):
            return self.module(*inputs)

    def _put(self, weights: Mapping[str, Tensor]) -> None:
        """Into their places in the module."""
        for name, tensor in weights.items():
            for parameters, key in self.places[name]:
                parameters[key] = tensor  # type: ignore[assignment]  # a tensor does for a module

    def forward(
        self, inputs: Tensors, weights: dict[str, Tensor], target: Samples | None
    ) -> tuple[Tensors, Activations]:
        """The bundle that goes out (the loss alone on the last stage), and what to hold."""
        for tensor, spec in zip(inputs, self.specs, strict=True):
            tensor.requires_grad_(spec.requires_grad)
        result = self.run(inputs, weights)
        if self.loss is not None and target is not None:
            with self._cast(inputs):
                result = (self.loss(result, target),)
        kept = Activations(_differentiable(inputs), weights, _differentiable(result))
        if self.local is not None and target is not None:
            kept.judged = result, target
        return result, kept

    def local_loss(self, held: Activations) -> Tensor:
        """The stage's own loss of a forward, with the weights that this read; the backward to come
        begins there."""
        assert self.local is not None, "the stage has no loss of its own"
        assert held.judged is not None, "a forward was given no answers"
        bundle, target = held.judged
        self._put(held.weights)
        with self._cast(bundle):
            loss = self.local(bundle, target)
        held.outputs, held.judged = (loss,), None
        return loss

    def judged(self, result: Any) -> Any:
        """The scores of a result of `run`: those of the stage's own head, where it has one."""
        if self.local is None:
            return result
        with self._cast(result):
            return self.local.head(result)

    def state(self, earlier: ModuleState | None = None) -> ModuleState | None:
        """What a recomputation of the forward to come must meet again; None where the module keeps
        nothing. `earlier` is that of a forward before."""
        return ModuleState.of(self.module, earlier) if self.keeps_state else None

    def backward(self, held: Activations, gradients: Tensors) -> tuple[Tensors, dict[str, Tensor]]:
        """(gradients of the inputs that have one, gradients of the weights).

        `gradients` belong to the outputs that have one; on the last stage there is that of the
        loss, or none where it is 1.
        """
        wanted = (*held.inputs, *held.weights.values())
        found = self._grad(held, wanted, gradients)
        num_inputs = len(held.inputs)
        of_weights = zip(held.weights, found[num_inputs:], strict=True)
        return tuple(found[:num_inputs]), dict(of_weights)

    def backward_onto(
        self, held: Activations, gradients: Tensors, sums: Sequence[Tensor]
    ) -> tuple[Tensors, list[Tensor]]:
        """As `backward`, with the gradients of the weights added to `sums` in place; where these
        are empty, new ones. Autograd adds each as soon as it is made, so that those of one
        microbatch are never there all at once."""
        weights = tuple(held.weights.values())

        def work() -> None:
            if held.outputs and (wanted := (*held.inputs, *weights)):
                torch.autograd.backward(held.outputs, gradients or None, inputs=wanted)

        of_weights = _added(weights, sums, work)
        of_inputs = _filled(held.inputs, [tensor.grad for tensor in held.inputs])
        for tensor in held.inputs:
            tensor.grad = None
        return of_inputs, of_weights

    def backward_input(self, held: Activations, gradients: Tensors) -> Tensors:
        """The gradients of the inputs alone; the graph stays for `backward_weight`."""
        coming = gradients or tuple(map(torch.ones_like, held.outputs))
        weights = tuple(held.weights.values())
        found, held.deferred = backward_input(held.outputs, held.inputs, weights, coming)
        return _filled(held.inputs, found)

    def backward_weight(self, held: Activations, sums: Sequence[Tensor] = ()) -> dict[str, Tensor]:
        """The gradients of the weights alone, after `backward_input`; added to `sums` as
        `backward_onto` does it."""
        deferred = held.deferred
        assert deferred is not None, "the input's half of a backward comes first"
        weights = tuple(held.weights.values())
        found = _added(weights, sums, lambda: backward_weight(weights, deferred))
        return dict(zip(held.weights, found, strict=True))

    def _grad(self, held: Activations, wanted: Tensors, gradients: Tensors) -> Tensors:
        """One gradient per wanted tensor: zeros where the outputs do not depend on it."""
        if not wanted or not held.outputs:
            return _filled(wanted, [None] * len(wanted))
        found = torch.autograd.grad(held.outputs, wanted, gradients or None, allow_unused=True)
        return _filled(wanted, found)

    def _cast(self, inputs: Tensors) -> AbstractContextManager[object]:
        return autocast(inputs[0].device, self.precision)


def import_backward() -> None:
    """Let torch import what its first backward of given gradients needs (in 2.13 that is 486
    modules and a second), so that the first microbatch does not wait for it."""
    weight = torch.zeros((), requires_grad=True)
    torch.autograd.grad([weight * 1], [weight], [torch.ones(())])


def autocast(device: torch.device, precision: Precision) -> AbstractContextManager[object]:
    """Compute in `precision` inside, where torch's autocast thinks it safe."""
    if precision == "float32":
        return nullcontext()
    cast = torch.autocast(device.type, dtype=getattr(torch, precision))
    if device.type != "cpu" or _ONEDNN_COMPUTES_IN[precision]():
        return cast
    return _without_onednn(cast)


_ONEDNN_COMPUTES_IN = {
    "bfloat16": torch.ops.mkldnn._is_mkldnn_bf16_supported,
    "float16": torch.ops.mkldnn._is_mkldnn_fp16_supported,
}


@contextmanager
def _without_onednn(cast: AbstractContextManager[object]) -> Iterator[None]:
    """On processors without AVX-512, torch 2.13 gives a rounded LSTM to oneDNN, which has none
    there and raises; other rounded layers do without oneDNN anyway."""
    before = torch.backends.mkldnn.enabled
    torch.backends.mkldnn.enabled = False  # type: ignore[assignment]  # torch has no type for it
    try:
        with cast:
            yield
    finally:
        torch.backends.mkldnn.enabled = before


def _added(weights: Tensors, sums: Sequence[Tensor], work: Callable[[], None]) -> list[Tensor]:
    """What `work` leaves as `grad` of the weights, which begins as `sums`, or as none."""
    for weight, so_far in zip(weights, sums, strict=bool(sums)):
        weight.grad = so_far
    work()
    found = _filled(weights, [weight.grad for weight in weights])
    for weight in weights:
        weight.grad = None
    return list(found)


def _filled(wanted: Tensors, found: Sequence[Tensor | None]) -> Tensors:
    """Dense, also where an embedding makes sparse ones: messages, sums and updates are."""
    return tuple(
        torch.zeros_like(tensor) if gradient is None else dense(gradient)
        for tensor, gradient in zip(wanted, found, strict=True)
    )


def _differentiable(tensors: Sequence[Tensor]) -> Tensors:
    return tuple(tensor for tensor in tensors if tensor.requires_grad)


def _may_keep_state(module: nn.Module) -> bool:
    """Whether it has buffers, hooks, generators, or code that is neither torch's nor a graph."""
    return any(
        part._buffers
        or part._forward_hooks
        or part._forward_pre_hooks
        or type(part).__module__.partition(".")[0] != "torch"
        or any(isinstance(value, torch.Generator) for value in vars(part).values())
        for part in module.modules()
    )


def _places(module: nn.Module, parameter: nn.Parameter) -> Places:
    return tuple(
        (part._parameters, key)
        for part in module.modules()
        for key, here in part._parameters.items()
        if here is parameter
    )
