"""What each layer keeps for its backward, its operations, and the peak of a whole step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

from workers.definitions.samples import Samples
from workers.profiler.allocations import allocations
from workers.profiler.measure import Bench, some_gradients, sweep
from workers.profiler.process_memory import unused_bytes
from workers.runtime.compute.stage import Activations, Tensors


def _attention(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
    """Of the shapes of query, key and value."""
    count: Callable[..., int] = sdpa_flop_count
    return count(query, key, value)


CPU_ATTENTION = {torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _attention}
"""torch counts the operations of attention's kernels on GPUs only."""


@dataclass(frozen=True, slots=True)
class StepPeak:
    """Bytes at the peak of one step of the whole model: those that are `alive`, weights and the
    optimizer's velocity included, the model's own copy not; and those that the allocator holds
    beside, `unused`."""

    alive: int
    unused: int


@dataclass(frozen=True, slots=True)
class LayerSizes:
    """Per layer what autograd keeps for the backward, in bytes, and the operations of one forward;
    `work`, `deferred`: as `Layer.work_bytes` and so on, None = not measured; `peak` likewise."""

    saved: list[int]
    flops: list[float]
    work: list[int] | None = None
    peak: StepPeak | None = None
    deferred: list[int] | None = None


def saved_bytes(benches: Sequence[Bench], inputs: Tensors, targets: Samples) -> list[int]:
    """Bytes that autograd keeps per layer: each storage once, at the first layer that keeps
    it, weights and buffers left out, frozen ones too. What a layer keeps of the bundle that comes
    in is the bundle's."""
    counted = {_storage(weight) for bench in benches for weight in bench.weights.values()}
    for module in (bench.stage.module for bench in benches):
        frozen = (weight for weight in module.parameters() if not weight.requires_grad)
        counted |= {_storage(tensor) for tensor in (*frozen, *module.buffers())}
    held: list[Activations] = []  # storages that live on cannot be mistaken for new ones
    first = bundle = tuple(tensor.clone() for tensor in inputs)
    result = []
    counted |= {_storage(tensor) for tensor in first}
    for bench in benches:
        sizes: list[int] = []

        def pack(tensor: Tensor, sizes: list[int] = sizes) -> Tensor:
            if (place := _storage(tensor)) not in counted:
                counted.add(place)
                sizes.append(tensor.untyped_storage().nbytes())
            return tensor

        with saved_tensors_hooks(pack, lambda tensor: tensor):
            bundle, kept = bench.stage.forward(bundle, bench.weights, targets)
        held.append(kept)
        bundle = tuple(tensor.detach() for tensor in bundle)
        result.append(sum(sizes))
    return result


def flops(benches: Sequence[Bench], inputs: Tensors, targets: Samples) -> list[float]:
    """Floating point operations of one forward per layer, as torch counts them: matrix
    products, convolutions and attention; others count nothing."""
    result, bundle = [], tuple(tensor.clone() for tensor in inputs)
    for bench in benches:
        with FlopCounterMode(display=False, custom_mapping=CPU_ATTENTION) as counter:
            bundle, _ = bench.stage.forward(bundle, bench.weights, targets)
        bundle = tuple(tensor.detach() for tensor in bundle)
        result.append(float(counter.get_total_flops()))
    return result


def step_peak(whole: Bench, inputs: Tensors, targets: Samples) -> StepPeak:
    """Of the model as one layer."""
    step = partial(sweep, [whole], inputs, targets)
    step()  # makes the velocity
    resident = 2 * sum(weight.nbytes for weight in whole.weights.values())
    device = inputs[0].device
    with allocations(device) as allocated:
        allocated.during(step)
    most = allocated.pieces[0].most
    return StepPeak(resident + most, unused_bytes(step, most, device))


def work_bytes(benches: Sequence[Bench], inputs: Tensors, targets: Samples) -> list[int]:
    """Most bytes that each layer has alive at once in its forward, beside what it hands on and
    keeps, or in its backward, the gradients that come to it included; those of its weights are
    added to sums that are there already."""
    held: list[Activations] = []
    coming: list[int] = []
    with allocations(inputs[0].device) as allocated:
        bundle = tuple(tensor.clone() for tensor in inputs)
        for bench in benches:
            forward = partial(bench.stage.forward, bundle, bench.weights, targets)
            bundle, kept = allocated.during(forward)
            held.append(kept)
            bundle = tuple(tensor.detach() for tensor in bundle)
        gradients = () if benches[-1].stage.loss else some_gradients(held[-1].outputs)
        for bench in reversed(benches):
            kept, sums = held.pop(), [torch.zeros_like(w) for w in bench.weights.values()]
            coming.append(sum(gradient.nbytes for gradient in gradients))
            backward = partial(bench.stage.backward_onto, kept, gradients, sums)
            gradients, _ = allocated.during(backward)
    half = len(benches)
    forwards, backwards = allocated.pieces[:half], allocated.pieces[half:]
    back = (piece.most + more for piece, more in zip(backwards, coming, strict=True))
    pairs = zip(forwards, reversed([*back]), strict=True)
    return [max(piece.most - piece.left, most) for piece, most in pairs]


def deferred_bytes(benches: Sequence[Bench], inputs: Tensors, targets: Samples) -> list[int]:
    """Bytes of gradients per layer that the input's half of a backward leaves for the weights':
    each storage once, at the last layer that keeps it."""
    held: list[Activations] = []
    bundle = tuple(tensor.clone() for tensor in inputs)
    for bench in benches:
        bundle, kept = bench.stage.forward(bundle, bench.weights, targets)
        held.append(kept)
        bundle = tuple(tensor.detach() for tensor in bundle)
    gradients = () if benches[-1].stage.loss else some_gradients(held[-1].outputs)
    counted: set[int] = set()
    result: list[int] = []
    for bench, kept in zip(reversed(benches), reversed(held), strict=True):
        gradients = bench.stage.backward_input(kept, gradients)
        assert kept.deferred is not None, "the input's half has just been"
        new = {_storage(one): one for one in kept.deferred.held if _storage(one) not in counted}
        counted |= set(new)
        result.append(sum(one.untyped_storage().nbytes() for one in new.values()))
    return result[::-1]


def _storage(tensor: Tensor) -> int:
    """Which storage it is, with or without memory behind it."""
    return int(tensor.untyped_storage()._cdata)
