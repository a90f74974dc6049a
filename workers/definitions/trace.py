"""A model as a list of operations in running order, or none where tracing is not sound."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.utils._pytree import tree_leaves


@dataclass(frozen=True, slots=True)
class Traced:
    """`model` owns every parameter by its own name; `graph` runs it (None: not traceable)."""

    model: nn.Module
    graph: fx.Graph | None
    notes: tuple[str, ...] = ()


class _Tracer(fx.Tracer):
    """Traces `forward(input)`; further arguments keep their Python defaults."""

    proxy_buffer_attributes = True

    def __init__(self, whole_submodules: bool) -> None:
        super().__init__()
        self.whole_submodules = whole_submodules

    def create_args_for_root(
        self, root_fn: Any, is_module: bool, concrete_args: Any = None
    ) -> tuple[Any, list[Any]]:
        return root_fn, [self.root, self.create_proxy("placeholder", "input", (), {})]

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        if self.whole_submodules:
            return not isinstance(m, nn.Sequential)
        return super().is_leaf_module(m, module_qualified_name)


def trace(model: nn.Module, example: Tensor) -> Traced:
    """Trace `model`, first through every submodule, then with the user's submodules whole.

    A trace counts only if training and evaluation mode give the same graph and if running
    it gives what the model gives on `example`; otherwise `graph` is None and a note says why.
    """
    reasons: list[str] = []
    for whole_submodules in (False, True):
        try:
            copied, graph = _trace_once(model, whole_submodules)
            _check_same_output(model, fx.GraphModule(copied, graph), example)
        except Exception as error:  # tracing runs the user's code with stand-ins
            reasons.append(_short(error))
            continue
        notes = (f"Submodules are kept whole: {reasons[0]}",) if reasons else ()
        return Traced(copied, graph, notes)
    return Traced(model, None, (f"The model is one layer and cannot be cut: {reasons[-1]}",))


@contextmanager
def untouched(model: nn.Module) -> Iterator[None]:
    """Inside, the model may run in any mode; buffers, mode and random state come back after."""
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    training = model.training
    try:
        with torch.random.fork_rng():
            yield
    finally:
        model.train(training)
        with torch.no_grad():
            for buffer, before in buffers:
                buffer.copy_(before)


def tensors_of(output: Any) -> list[Tensor]:
    """The tensors in an output of any structure."""
    return [leaf for leaf in tree_leaves(output) if isinstance(leaf, Tensor)]


def _trace_once(model: nn.Module, whole_submodules: bool) -> tuple[nn.Module, fx.Graph]:
    """A copy (tracing may write to the module) and its graph, alike in both modes."""
    training, evaluating = (copy.deepcopy(model).train(mode) for mode in (True, False))
    graph = _Tracer(whole_submodules).trace(training)
    if str(graph) != str(_Tracer(whole_submodules).trace(evaluating)):
        raise ValueError("its forward depends on self.training; nn.Dropout and such do not")
    if not any(node.op.startswith("call_") for node in graph.nodes):
        raise ValueError("its forward has no operation")
    for name, value in vars(training).items():
        if isinstance(value, Tensor) and not torch.equal(value, vars(evaluating)[name]):
            raise ValueError("its forward draws random numbers that depend on no input")
    return training.train(model.training), graph


def _check_same_output(model: nn.Module, runner: nn.Module, example: Tensor) -> None:
    for mode in (True, False):
        outputs = []
        for module in (model, runner):
            with untouched(module), torch.no_grad():
                torch.manual_seed(0)
                outputs.append(tensors_of(module.train(mode)(example.clone())))
        for mine, theirs in zip(*outputs, strict=True):
            if not torch.allclose(mine, theirs, equal_nan=True):
                raise ValueError("its forward does something that tracing does not see")


def _short(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
