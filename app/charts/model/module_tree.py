"""The layers of a model by its modules, which a picture shows open or closed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

LEGIBLE = 24
"""Boxes that a picture may have when it is first seen."""


@dataclass(frozen=True, slots=True)
class Module:
    """Neighbouring layers `first` up to `stop` under one `path`; members in running order,
    a layer by its index. A module whose layers run in several turns is several of these."""

    path: str
    first: int
    stop: int
    members: tuple["Module | int", ...]

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


def module_tree(names: Sequence[str]) -> Module:
    """The whole model. A module with one member alone is passed over."""
    members = tuple(_members(names, 0, len(names), 1))
    return Module("", 0, len(names), members)


def _members(names: Sequence[str], first: int, stop: int, depth: int) -> Iterator[Module | int]:
    """What is between `first` and `stop`, told apart by `depth` parts of the names."""
    for path, run in groupby(range(first, stop), key=lambda i: _head(names[i], depth)):
        found = list(run)
        if len(found) == 1:
            yield found[0]
            continue
        inner = tuple(_members(names, found[0], found[-1] + 1, depth + 1))
        if len(inner) == 1 and isinstance(inner[0], Module):
            yield inner[0]
        else:
            yield Module(path, found[0], found[-1] + 1, inner)


def _head(name: str, depth: int) -> str:
    return ".".join(name.split(".")[:depth])


def first_open(root: Module) -> frozenset[str]:
    """Which modules to show open at first: from outside in, as long as it stays legible."""
    opened: set[str] = set()
    shown, waiting = len(root.members), [root]
    while waiting:
        inside = [m for module in waiting for m in module.members if isinstance(m, Module)]
        more = sum(len(module.members) for module in inside)
        if not inside or shown + more > LEGIBLE:
            break
        opened |= {module.key for module in inside}
        shown, waiting = shown + more, inside
    return frozenset(opened)


def around(root: Module, layer: int) -> frozenset[str]:
    """The modules that must be open for a layer to be seen."""
    return frozenset(m.key for m in root.modules() if m.path and m.first <= layer < m.stop)
