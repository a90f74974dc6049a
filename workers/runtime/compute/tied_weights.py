"""Which names of a model's state are one tensor (tied weights)."""

from collections import defaultdict

from torch import nn


def tied_names(model: nn.Module) -> dict[str, tuple[str, ...]]:
    """Every name of the model's state with all names of the same tensor."""
    state = model.state_dict(keep_vars=True)
    names: dict[int, list[str]] = defaultdict(list)
    for name, tensor in state.items():
        names[id(tensor)].append(name)
    return {name: tuple(names[id(tensor)]) for name, tensor in state.items()}
