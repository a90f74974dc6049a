"""Which operations belong together in the eyes of people: modules, and blocks of modules.

fine    a layer per module without children, functions between them as they stand
blocks  an element of a ModuleList or Sequential that has modules inside is one layer, unless it
        holds more than half of the weights: then the blocks inside it, or else its modules, are
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from typing import Literal

from torch import fx

from workers.definitions.tracing.capture import module_path

Granularity = Literal["fine", "blocks"]


def blocks(paths: Iterable[str], sizes: Mapping[str, int] | None = None) -> frozenset[str]:
    """The outermost paths that end in a number and have named modules inside. `sizes` are the
    bytes of weights by name: a block that holds most of them is opened, level by level."""
    children: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        parts = path.split(".")
        for stop in range(1, len(parts)):
            children[".".join(parts[:stop])].add(parts[stop])
    known = {
        path
        for path, names in children.items()
        if path.split(".")[-1].isdigit() and not all(name.isdigit() for name in names)
    }
    total = sum((sizes or {}).values())
    held = {
        path: sum(size for name, size in (sizes or {}).items() if name.startswith(f"{path}."))
        for path in known
    }
    closed = {path for path in known if 2 * held[path] <= total}
    return frozenset(path for path in closed if not closed & set(_parents(path)))


class Units:
    """Labels operations: neighbours with equal labels are one layer, where that is sound."""

    def __init__(self, runner: fx.GraphModule, by_path: bool, granularity: Granularity) -> None:
        graph = runner.graph
        self._by_path = by_path
        self._paths = {
            node: str(node.target) if node.op == "call_module" else module_path(node)
            for node in graph.nodes
            if node.op[:4] == "call"
        }
        self._inner = {parent for path in {*self._paths.values()} for parent in _parents(path)}
        sizes = {name: weight.nbytes for name, weight in runner.named_parameters()}
        in_blocks = granularity == "blocks"
        found = blocks(self._paths.values(), sizes) if in_blocks else frozenset()
        self._block_of = {
            path: next((b for b in (*_parents(path), path) if b in found), None)
            for path in {*self._paths.values()}
        }

    def path(self, node: fx.Node) -> str:
        """The path of the block or module that the operation belongs to."""
        own = self._paths[node]
        return self._block_of[own] or own

    def label(self, node: fx.Node) -> Hashable:
        own = self._paths[node]
        return self._block_of[own] or (own if self._by_path and own else node)

    def is_unit(self, node: fx.Node) -> bool:
        """Whether the operation is known by its module or block and not by itself."""
        return self.label(node) is not node or node.op == "call_module"

    def is_whole(self, node: fx.Node) -> bool:
        """Whether its unit may hold weights of several operations."""
        own = self._paths[node]
        return self._block_of[own] is not None or own not in self._inner

    def kind(self, node: fx.Node) -> str:
        """The class of its module or block ("" where the trace does not say)."""
        wanted = self.path(node)
        for path, kind in (node.meta.get("nn_module_stack") or {}).values():
            if str(path).removeprefix("L['self']").removeprefix(".") == wanted:
                return str(getattr(kind, "__name__", kind)).split(".")[-1]
        return ""


def _parents(path: str) -> list[str]:
    parts = path.split(".")
    return [".".join(parts[:stop]) for stop in range(1, len(parts))]
