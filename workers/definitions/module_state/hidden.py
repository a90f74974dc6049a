"""Whether a trace reads the tensors that forwards leave in attributes, or writes them first."""

from collections.abc import Sequence
from typing import Any, NoReturn

from torch import Tensor, nn

from workers.definitions.module_state.contents import put_fields
from workers.definitions.module_state.module_state import Difference, ModuleState, named


class Unreadable:
    """Stands for a tensor that a forward is not to read: whatever reads it raises `ValueError`."""

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise ValueError("it reads what an earlier forward left")

    __getattr__ = __bool__ = __eq__ = __len__ = __iter__ = __getitem__ = _refuse
    __float__ = __int__ = __index__ = __str__ = __torch_function__ = _refuse
    __hash__ = object.__hash__


def are_tensors(differences: Sequence[Difference]) -> bool:
    """Whether all that differs are the values of tensors that modules keep as attributes."""
    return all(
        isinstance(each.holder, Tensor) and each.module is not None and not each.is_buffer
        for each in differences
    )


def hide(model: nn.Module, differences: Sequence[Difference]) -> None:
    """Put what cannot be read in the places of these tensors."""
    kept = ModuleState.of(model).kept
    paths = {each.path for each in differences}
    hidden = {id(each.value) for each in kept if named(each.path) in paths}
    for each in kept:
        held = {
            k: Unreadable() if id(one) in hidden else one for k, one in (each.fields or {}).items()
        }
        if any(isinstance(one, Unreadable) for one in held.values()):
            put_fields(each.value, held)
