"""All that a model's modules keep from one forward to the next, wherever they keep it.

Buffers and attributes of any depth, what their hooks and closures hold, classes and names of the
definition's own file, and the random generators of Python, NumPy and torch. Weights are not part
of it.
"""

import random
import re
import sys
from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx, nn

from workers.definitions.module_state.contents import (
    GENERATORS,
    Fields,
    equal_values,
    fields,
    put_fields,
    put_values,
    values,
)

MODULE_NAME = "stageflow_definition"
"""Under which name the definition's file is imported."""
LARGE = 2**20
"""Elements. Data that a definition's file holds are not copied from this size on."""

_UNNAMED = re.compile(r"\b_(?:parameters|buffers|modules)(?:\.|$)")
"""The dictionaries of a module, which people do not write."""
_WEIGHTS = "_parameters"
_BUFFER = re.compile(r"\b_buffers\.\w+$")
_ATOMS = (bool, int, float, complex, str, bytes, type(None), torch.Size, torch.dtype, torch.device)
_HOLDERS = frozenset({dict, OrderedDict, list, tuple, set, deque, CellType, MethodType, partial})
"""Types that hold other objects and consist of no numbers; other ones of theirs are asked."""


@dataclass(frozen=True, slots=True)
class Kept:
    """One object as it was: where it was found, in which module (None: in none), what it held, of
    which numbers it consisted, and how often a tensor had been written to."""

    path: str
    module: str | None
    value: Any
    fields: Fields | None
    values: Any
    version: int = 0


@dataclass(frozen=True, slots=True)
class Difference:
    """The path of what differs, and that of the module that keeps it (None: none does).

    holder      the object that holds or is something else
    is_buffer   it is a buffer or consists of other numbers
    is_random   it is a generator of random numbers
    """

    path: str
    module: str | None
    holder: Any = field(compare=False)
    is_buffer: bool = False
    is_random: bool = False


@dataclass(frozen=True, slots=True)
class ModuleState:
    """The state of a model at one time."""

    kept: tuple[Kept, ...]

    @staticmethod
    def of(model: nn.Module, earlier: "ModuleState | None" = None) -> "ModuleState":
        """As it is now. Copies that an `earlier` state has of the same numbers are taken over."""
        return ModuleState(tuple(_StateWalk(earlier).all(model)))

    def restore(self) -> None:
        """Put back what is no longer as it was, object by object."""
        with torch.no_grad():
            for each in self.kept:
                if each.values is not None:
                    if not equal_values(each.values, values(each.value)):
                        put_values(each.value, each.values)
                elif each.fields is not None and not _is_held(each.value, each.fields):
                    put_fields(each.value, each.fields)

    @contextmanager
    def met_again(self, model: nn.Module) -> Iterator[None]:
        """Inside, `model` meets this state, its tensors as copies: those of now are not written to,
        and are in their places after."""
        now = ModuleState.of(model)
        self._put_copies()
        try:
            yield
        finally:
            now.restore()

    def _put_copies(self) -> None:
        tensors = (each for each in self.kept if isinstance(each.value, Tensor))
        copies = {id(each.value): each.values.clone() for each in tensors}
        for each in self.kept:
            if each.fields is not None:
                held = {key: copies.get(id(one), one) for key, one in each.fields.items()}
                if not _is_held(each.value, held):
                    put_fields(each.value, held)
            elif id(each.value) not in copies:
                put_values(each.value, each.values)

    def differences(self, other: "ModuleState") -> tuple[Difference, ...]:
        """What another state of the same model, or of a copy of it, has that this one has not, or
        has otherwise."""
        mine, theirs = ({each.path: each for each in state.kept} for state in (self, other))
        found: dict[str, Difference] = {}
        for path, one in mine.items():  # what one alone has differs in what holds it
            for name in _differing(one, theirs[path]) if path in theirs else ():
                place = named(_joined(path, name))
                found[place] = Difference(
                    place,
                    one.module,
                    one.value,
                    _BUFFER.search(_joined(path, name)) is not None,
                    isinstance(one.value, GENERATORS),
                )
        return tuple(found.values())


class _StateWalk:
    """Goes through objects and what they hold, to each once. Models keep thousands, and each state
    visits all: what most of them are is asked first, and of their type."""

    def __init__(self, earlier: ModuleState | None = None) -> None:
        self._seen: dict[int, object] = {}
        self._found: list[Kept] = []
        kept = earlier.kept if earlier else ()
        self._copies = {id(each.value): each.values for each in kept if each.values is not None}

    def all(self, model: nn.Module) -> list[Kept]:
        self._visit("", "", model)
        if (own := sys.modules.get(MODULE_NAME)) is not None:
            self._visit(own.__name__, None, own)
        for name, generator in _generators().items():
            self._visit(name, None, generator)
        return self._found

    def within(self, model: nn.Module) -> list[Kept]:
        self._visit("", "", model)
        return self._found

    def _visit(self, path: str, module: str | None, value: Any) -> None:
        kind = type(value)
        if kind in _ATOMS or id(value) in self._seen:
            return
        copied, version = None, 0
        if kind not in _HOLDERS:
            if isinstance(value, (*_ATOMS, nn.Parameter, fx.Proxy)):
                return
            if isinstance(value, nn.Module) and module is not None:
                module = named(path).removesuffix(".")
            if _is_foreign(value) or (module is None and _is_large(value)):
                self._seen[id(value)] = value
                return
            copied, version = self._copied(value), _version(value)
        self._seen[id(value)] = value
        held = None if isinstance(value, Tensor) or copied is not None else fields(value)
        if copied is None and held is None:
            return
        self._found.append(Kept(path, module, value, held, copied, version))
        if held and not path.endswith(_WEIGHTS):
            for key, each in held.items():
                if type(each) not in _ATOMS:
                    self._visit(_joined(path, key), module, each)
        if kind.__module__ == MODULE_NAME:
            self._visit(kind.__qualname__, None, kind)

    def _copied(self, value: object) -> Any:
        known = self._copies.get(id(value))
        if isinstance(value, Tensor) and known is not None and equal_values(known, value):
            return known
        return values(value)


def objects_in(module: nn.Module) -> set[int]:
    """The ids of all that one module keeps, generators that every module may draw from left out."""
    return {id(each.value) for each in _StateWalk().within(module)}


def _is_foreign(value: object) -> bool:
    """Modules, classes and torch's functions."""
    if isinstance(value, ModuleType):
        return value.__name__ != MODULE_NAME
    if isinstance(value, FunctionType):
        return value.__module__.partition(".")[0] == "torch"
    return isinstance(value, type) and value.__module__ != MODULE_NAME


def _version(value: object) -> int:
    is_counted = isinstance(value, Tensor) and not value.is_inference()
    return value._version if is_counted and isinstance(value, Tensor) else 0


def _is_large(value: object) -> bool:
    if isinstance(value, Tensor):
        return value.numel() >= LARGE
    return isinstance(value, np.ndarray) and value.size >= LARGE


def _generators() -> dict[str, Any]:
    """The random generators that every module may draw from, by what people call them."""
    return {
        "random": random._inst,  # the module's own
        "numpy.random": np.random.mtrand._rand,
        "torch.random": torch.default_generator,
    }


def _is_held(value: object, held: Fields) -> bool:
    now = fields(value) or {}
    return (
        len(now) == len(held)
        and all(map(_is_key, now, held))
        and all(now.get(key) is each for key, each in held.items())
    )


def _is_key(one: object, other: object) -> bool:
    """Whether two keys are the same; to compare stand-ins would write into the graph."""
    is_proxy = isinstance(one, fx.Proxy) or isinstance(other, fx.Proxy)
    return one is other or (not is_proxy and one == other)


def _differing(one: Kept, two: Kept) -> Iterator[object]:
    """The keys of what differs; "" for the object itself. What has an entry of its own is told
    there."""
    is_written = one.value is two.value and one.version != two.version
    if is_written or not equal_values(one.values, two.values):
        yield ""
    mine, theirs = one.fields or {}, two.fields or {}
    for key in dict.fromkeys((*mine, *theirs)):
        if key not in mine or key not in theirs or not _alike(mine[key], theirs[key]):
            yield key


def _alike(one: object, two: object) -> bool:
    """Whether two held objects stand for the same, as far as can be told without what they hold."""
    if one is two:
        return True
    if isinstance(one, fx.Proxy) and isinstance(two, fx.Proxy):
        return _meaning(one) == _meaning(two)
    if type(one) is not type(two) or isinstance(one, nn.Parameter):
        return False
    if isinstance(one, Tensor) and isinstance(two, Tensor):
        return one.shape == two.shape and one.dtype == two.dtype
    if isinstance(one, _ATOMS):
        return one == two or (one != one and two != two)
    return not _is_foreign(one) and (values(one) is not None or fields(one) is not None)


def _meaning(proxy: fx.Proxy) -> str:
    """What a stand-in stands for; to ask that of an attribute would write into the graph."""
    if isinstance(proxy, fx.proxy.Attribute):
        return f"{_meaning(proxy.root)}.{proxy.attr}"
    return str(proxy.node.name)


def _joined(path: str, key: object) -> str:
    if isinstance(key, str) and not key:
        return path
    if isinstance(key, str) and key.replace("_", "").isalnum():
        return f"{path}.{key}" if path else key
    return f"{path}[{key!r}]" if isinstance(key, _ATOMS) else f"{path}[{type(key).__name__}]"


def named(path: str) -> str:
    """The path as people write it."""
    return _UNNAMED.sub("", path)
