"""Traces a model with stand-ins (torch.fx): modules of torch.nn stay whole, layers by name."""

import copy
from typing import Any

import torch
from torch import Tensor, fx, nn

from workers.definitions.blueprint.blueprint import shapes_in


class _Tracer(fx.Tracer):
    """Traces `forward(*inputs)`; further arguments keep their Python defaults."""

    proxy_buffer_attributes = True

    def __init__(self, num_inputs: int, whole_submodules: bool) -> None:
        super().__init__()
        self.num_inputs, self.whole_submodules = num_inputs, whole_submodules

    def create_args_for_root(
        self, root_fn: Any, is_module: bool, concrete_args: Any = None
    ) -> tuple[Any, list[Any]]:
        names = ["input"] + [f"input_{number}" for number in range(1, self.num_inputs)]
        return root_fn, [self.root, *(self.create_proxy("placeholder", n, (), {}) for n in names)]

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        if self.whole_submodules:
            return not isinstance(m, nn.Sequential)
        return super().is_leaf_module(m, module_qualified_name)


def symbolic(
    model: nn.Module, num_inputs: int, whole_submodules: bool = False
) -> tuple[nn.Module, fx.Graph]:
    """A copy of `model` (tracing may write to it; parameters are shared) and its graph.

    Raises `ValueError` and whatever the user's code raises where the trace would not be sound.
    """
    training, evaluating = (twin(model).train(mode) for mode in (True, False))
    graph = _Tracer(num_inputs, whole_submodules).trace(training)
    if str(graph) != str(_Tracer(num_inputs, whole_submodules).trace(evaluating)):
        raise ValueError("its forward depends on self.training; nn.Dropout and such do not")
    for name, value in vars(training).items():
        if isinstance(value, Tensor) and not torch.equal(value, vars(evaluating)[name]):
            raise ValueError("its forward draws random numbers that depend on no input")
    return training.train(model.training), graph


def twin(model: nn.Module) -> nn.Module:
    """A copy that shares the parameters, and all tensors that have no values."""
    shared = (*model.parameters(), *shapes_in(model))
    return copy.deepcopy(model, {id(tensor): tensor for tensor in shared})
