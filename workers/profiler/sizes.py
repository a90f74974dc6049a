"""What each layer keeps for its backward, its operations, and the peak of a whole step."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

from workers.definitions.samples import Samples
from workers.profiler.measure import Bench, sweep
from workers.runtime.compute.stage import Activations, Tensors


def _attention(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
    """Of the shapes of query, key and value."""
    count: Callable[..., int] = sdpa_flop_count
    return count(query, key, value)


CPU_ATTENTION = {torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _attention}
"""torch counts the operations of attention's kernels on GPUs only."""


@dataclass(frozen=True, slots=True)
class LayerSizes:
    """Per layer what autograd keeps for the backward, in bytes, and the operations of one forward;
    `peak`: most bytes that one step of the whole model has alive, None = not measured."""

    saved: list[int]
    flops: list[float]
    peak: int | None = None


SILENT = "6"
"""Above every level of torch's profiler, which else prints of its start and stop."""


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


def peak_bytes(whole: Bench, inputs: Tensors, targets: Samples) -> int:
    """Most bytes that one step of the whole model has alive, weights and the optimizer's
    velocity included, the model's own copy not."""
    sweep([whole], inputs, targets)  # makes the velocity
    resident = 2 * sum(weight.nbytes for weight in whole.weights.values())
    if inputs[0].is_cuda:
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        sweep([whole], inputs, targets)
        return resident + torch.cuda.max_memory_allocated() - before
    os.environ.setdefault("KINETO_LOG_LEVEL", SILENT)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        sweep([whole], inputs, targets)
    alive = peak = 0
    for event in profiler.profiler.kineto_results.events():
        if event.name() == "[memory]":
            alive += event.nbytes()
            peak = max(peak, alive)
    return resident + peak


def _storage(tensor: Tensor) -> int:
    """Which storage it is, with or without memory behind it."""
    return int(tensor.untyped_storage()._cdata)
