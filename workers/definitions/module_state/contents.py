"""How one object that a forward may change is read, compared and put back."""

import random
from collections import OrderedDict, deque
from functools import partial
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor

_FOREIGN = frozenset({"torch", "logging", "threading", "_thread", "weakref"})
"""Packages whose objects, other than those below, keep nothing that a forward reads."""

_WEIGHT_LISTS = frozenset({"_flat_weights", "_flat_weight_refs"})

GENERATORS = (torch.Generator, random.Random, np.random.RandomState, np.random.Generator)

Fields = dict[Any, Any]
"""What an object holds by name, key or place."""


def fields(value: object) -> Fields | None:
    """The objects that this one holds; None where it holds none that could be others."""
    match value:
        case nn.RNNBase():  # its own lists of its weights, written anew with every weight
            return {key: each for key, each in vars(value).items() if key not in _WEIGHT_LISTS}
        case nn.Module():
            return dict(vars(value))
        case dict():
            return dict(value)
        case list() | deque() | tuple():
            return dict(enumerate(value))
        case set():
            return dict.fromkeys(value)
        case CellType():
            return _of_cell(value)
        case FunctionType():
            return dict(enumerate(_unchanging(value))) | vars(value)
        case MethodType():
            return {"self": value.__self__, "function": value.__func__}
        case partial():
            return {"function": value.func, "args": value.args, "keywords": value.keywords}
        case type() | ModuleType():
            return {k: each for k, each in vars(value).items() if not k.startswith("__")}
        case _:
            return _of_object(value)


def put_fields(value: Any, held: Fields) -> None:
    """Let the object hold these again and no others."""
    match value:
        case OrderedDict():
            OrderedDict.clear(value)
            OrderedDict.update(value, held)
        case dict() | set():
            value.clear()
            value.update(held)
        case list() | deque():
            value.clear()
            value.extend(held.values())
        case CellType():
            value.cell_contents = held[""]
        case type():
            _set(value, held, type)
        case FunctionType():
            vars(value).clear()
            vars(value).update({key: each for key, each in held.items() if isinstance(key, str)})
        case tuple() | MethodType() | partial():
            pass  # what these hold stays the same
        case _:
            _set(value, held, object)


def values(value: object) -> Any:
    """A copy of the numbers that an object consists of; None where it has none of its own."""
    match value:
        case nn.Parameter() | FakeTensor():
            return None
        case Tensor():
            has_values = not value.is_meta and value.layout is torch.strided
            return value.detach().clone() if has_values else None
        case np.ndarray():
            return value.copy()
        case torch.Generator():
            return value.get_state()
        case random.Random():
            return value.getstate()
        case np.random.RandomState():
            return value.get_state(legacy=False)
        case np.random.Generator():
            return value.bit_generator.state
        case _:
            return None


def put_values(value: Any, kept: Any) -> None:
    """Let the object consist of these numbers again."""
    match value:
        case Tensor():
            if value.shape == kept.shape:
                value.detach().copy_(kept)
            else:
                value.data = kept.clone()
        case np.ndarray():
            value[...] = kept
        case torch.Generator() | np.random.RandomState():
            value.set_state(kept)
        case random.Random():
            value.setstate(kept)
        case np.random.Generator():
            value.bit_generator.state = kept
        case _:
            raise AssertionError(f"{type(value).__name__} does not consist of numbers")


def equal_values(one: Any, other: Any) -> bool:
    """Whether two copies hold the same numbers; what is not a number equals itself."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        if (one.shape, one.dtype, one.device) != (other.shape, other.dtype, other.device):
            return False
        return bool(((one == other) | ((one != one) & (other != other))).all())
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        same = one.shape == other.shape and one.dtype == other.dtype
        return same and one.tobytes() == other.tobytes()
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal_values(one[k], other[k]) for k in one)
    return bool(one == other)


def _unchanging(function: FunctionType) -> tuple[Any, ...]:
    """The cells and the defaults of a function."""
    named = (function.__kwdefaults__ or {}).values()
    return *(function.__closure__ or ()), *(function.__defaults__ or ()), *named


def _of_cell(cell: CellType) -> Fields:
    try:
        return {"": cell.cell_contents}
    except ValueError:  # nothing was put into it yet
        return {}


def _of_object(value: object) -> Fields | None:
    """Its attributes, where its class is not one of those that keep nothing."""
    kind = type(value)
    if kind.__module__.partition(".")[0] in _FOREIGN:
        return None
    slots = [name for base in kind.__mro__ for name in _slots(base) if hasattr(value, name)]
    if not (slots or hasattr(value, "__dict__")):
        return None
    return {name: getattr(value, name) for name in slots} | getattr(value, "__dict__", {})


def _slots(kind: type) -> tuple[str, ...]:
    names = vars(kind).get("__slots__", ())
    found = (names,) if isinstance(names, str) else tuple(names)
    return tuple(name for name in found if not name.startswith("__"))


def _set(value: Any, held: Fields, kind: Any) -> None:
    """Give the object these attributes, past what its class does when they are set."""
    now = fields(value) or {}
    for key in now.keys() - held.keys():
        kind.__delattr__(value, key)
    for key, each in held.items():
        if key not in now or now[key] is not each:
            kind.__setattr__(value, key, each)
