"""A copy of a model that may be changed while it is traced."""

import copy

import torch
from torch import Tensor, nn

from workers.definitions.blueprint.blueprint import shapes_in
from workers.definitions.module_state.module_state import ModuleState


def twin(model: nn.Module) -> nn.Module:
    """A copy that shares the parameters, all tensors that have no values, and the generators, which
    a graph names. Of what was computed from parameters it has the values."""
    memo: dict[int, object] = {id(each): each for each in (*model.parameters(), *shapes_in(model))}
    for value in (each.value for each in ModuleState.of(model).kept):
        if isinstance(value, torch.Generator):
            memo[id(value)] = value
        elif isinstance(value, Tensor) and value.grad_fn is not None:
            memo.setdefault(id(value), value.detach().clone())
    return copy.deepcopy(model, memo)
