"""The layers of a model by its modules, which a picture shows open or closed."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby

from backend.profiles.folds import Fold

LEGIBLE = 24
"""Boxes that a picture may have when it is first seen."""


@dataclass(frozen=True, slots=True)
class Module:
    """Neighbouring layers `first` up to `stop` under one `path`; members in running order,
    a layer by its index. A module whose layers run in several turns is several of these. Where
    its members are equal, `blocks` is their number, else 0."""

    path: str
    first: int
    stop: int
    members: tuple["Module | int", ...]
    blocks: int = 0

    @property
    def key(self) -> str:
        """Its name in links and clicks; the root's is ""."""
        return f"{self.path}:{self.first}" if self.path else ""

    def modules(self) -> Iterator["Module"]:
        """Itself and all below, outer ones first."""
        yield self
        for member in self.members:
            if isinstance(member, Module):
                yield from member.modules()


def module_tree(names: Sequence[str], folds: Sequence[Fold] = ()) -> Module:
    """The whole model, with a module around the blocks of each fold. A module with one member
    alone is passed over."""
    members = _wrapped(_members(names, folds, range(len(names)), 1), folds)
    return _marked(Module("", 0, len(names), members), folds)


def _members(
    names: Sequence[str], folds: Sequence[Fold], within: range, depth: int
) -> Iterator[Module | int]:
    """What is in `within`, told apart by `depth` parts of the names."""
    for path, run in groupby(within, key=lambda i: _head(names[i], depth)):
        found = list(run)
        if len(found) == 1:
            yield found[0]
            continue
        span = range(found[0], found[-1] + 1)
        inner = tuple(_members(names, folds, span, depth + 1))
        if len(inner) == 1 and isinstance(inner[0], Module):
            yield inner[0]
        else:
            module = Module(path, span.start, span.stop, _wrapped(inner, folds))
            yield _marked(module, folds)


def _wrapped(members: Iterable[Module | int], folds: Sequence[Fold]) -> tuple[Module | int, ...]:
    """The members, those of each block in one module, and those of each fold in one around
    it, unless there are no others."""
    found = tuple(members)
    for fold in folds:
        inside = tuple(m for m in found if fold.first <= _first(m) and _stop(m) <= fold.stop)
        blocks = tuple(_block(inside, *each) for each in zip(fold.names, fold.blocks, strict=True))
        if not inside or any(block is None for block in blocks):
            continue
        equal = tuple(block for block in blocks if block is not None)
        at = found.index(inside[0])
        whole = (Module(fold.name, fold.first, fold.stop, equal, fold.count),)
        is_all = len(inside) == len(found)
        found = (*found[:at], *(equal if is_all else whole), *found[at + len(inside) :])
    return found


def _marked(module: Module, folds: Sequence[Fold]) -> Module:
    """The module; with the number of its blocks where it is all of a fold."""
    for fold in folds:
        is_all = (fold.first, fold.stop) == (module.first, module.stop)
        if is_all and len(module.members) == fold.count:
            return replace(module, blocks=fold.count)
    return module


def _block(inside: Sequence[Module | int], name: str, layers: range) -> Module | int | None:
    """The members that make up these layers as one; None where they make up others too."""
    found = [m for m in inside if layers.start <= _first(m) and _stop(m) <= layers.stop]
    if sum(_stop(m) - _first(m) for m in found) < len(layers):
        return None
    if len(found) == 1:
        return found[0]
    parts = (m.members if isinstance(m, Module) and m.path == name else (m,) for m in found)
    return Module(name, layers.start, layers.stop, tuple(chain.from_iterable(parts)))


def _first(member: Module | int) -> int:
    return member.first if isinstance(member, Module) else member


def _stop(member: Module | int) -> int:
    return member.stop if isinstance(member, Module) else member + 1


def _head(name: str, depth: int) -> str:
    return ".".join(name.split(".")[:depth])


def first_open(root: Module) -> frozenset[str]:
    """Which modules to show open at first: from outside in, as long as it stays legible; none
    of equal blocks."""
    opened: set[str] = set()
    shown, waiting = len(root.members), [root]
    while waiting:
        members = (m for module in waiting for m in module.members)
        inside = [m for m in members if isinstance(m, Module) and not m.blocks]
        more = sum(len(module.members) for module in inside)
        if not inside or shown + more > LEGIBLE:
            break
        opened |= {module.key for module in inside}
        shown, waiting = shown + more, inside
    return frozenset(opened)


def around(root: Module, layer: int) -> frozenset[str]:
    """The modules that must be open for a layer to be seen."""
    return frozenset(m.key for m in root.modules() if m.path and m.first <= layer < m.stop)
