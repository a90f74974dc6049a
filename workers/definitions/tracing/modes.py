"""One graph of the two that a model has: that of training and that of evaluation.

What both do is there once. What one of them does alone is done in its mode alone, and where an
operation of both reads something else in each, the mode chooses.
"""

from collections.abc import Callable
from difflib import SequenceMatcher
from functools import lru_cache
from types import FunctionType
from typing import Any

import torch
from torch import fx
from torch.utils._pytree import tree_flatten, tree_unflatten

_MODE, _OF_ONE_MODE = "training", "An operation of one mode alone."


def by_mode(training: bool, learning: Any, evaluating: Any) -> Any:
    """What stands for the module's mode."""
    return learning if training else evaluating


@lru_cache(maxsize=1024)  # so that equal layers have equal operations
def in_mode(operation: Callable[..., Any], mode: bool) -> Callable[..., Any]:
    """The operation done in training (or in evaluation) alone; None in the other mode."""

    def in_one_mode(training: bool, *args: Any, **named: Any) -> Any:
        return operation(*args, **named) if training == mode else None

    in_one_mode.__name__ = str(getattr(operation, "__name__", operation))
    in_one_mode.__doc__ = _OF_ONE_MODE
    return in_one_mode


def is_of_one_mode(node: fx.Node) -> bool:
    """Whether the operation is done in one mode alone: its result must not cross a cut."""
    return isinstance(node.target, FunctionType) and node.target.__doc__ == _OF_ONE_MODE


def has_modes(graph: fx.Graph) -> bool:
    """Whether the modes differ in more than constants."""
    return any(is_of_one_mode(node) for node in graph.nodes)


def join_modes(learning: fx.Graph, evaluating: fx.Graph) -> None:
    """Let `learning` do what `evaluating` does where the module is in evaluation mode."""
    ours, theirs = list(learning.nodes), list(evaluating.nodes)
    matcher = SequenceMatcher(None, [*map(_key, ours)], [*map(_key, theirs)], autojunk=False)
    joining = _Joining(learning)
    for what, i, j, k, end in matcher.get_opcodes():
        if what == "equal":
            for mine, other in zip(ours[i:j], theirs[k:end], strict=True):
                joining.both(mine, other)
            continue
        for node in ours[i:j]:
            joining.gate(node, True)
        for node in theirs[k:end]:
            joining.add(node, before=ours[j])
    joining.sink()


class _Joining:
    """`place` says which node of the joint graph is each one of evaluation's."""

    def __init__(self, graph: fx.Graph) -> None:
        self.graph = graph
        self.place: dict[fx.Node, fx.Node] = {}
        self.gated: list[fx.Node] = []

    def both(self, mine: fx.Node, other: fx.Node) -> None:
        self.place[other] = mine
        args, others = _full(mine), fx.map_arg(_full(other), self.place.__getitem__)
        named = fx.map_arg(other.kwargs, self.place.__getitem__)
        if len(args) != len(others) or mine.kwargs.keys() != named.keys():
            raise ValueError("its forward gives an operation other arguments in training")
        mine.args = tuple(self._either(mine, a, b) for a, b in zip(args, others, strict=True))
        mine.kwargs = {name: self._either(mine, a, named[name]) for name, a in mine.kwargs.items()}

    def _either(self, user: fx.Node, learning: Any, evaluating: Any) -> Any:
        """One argument of both modes, its parts chosen by the mode where they differ."""
        mine, structure = tree_flatten(learning, is_leaf=_is_leaf)
        others, other = tree_flatten(evaluating, is_leaf=_is_leaf)
        if structure != other:
            return self._chosen(user, learning, evaluating)
        pairs = zip(mine, others, strict=True)
        return tree_unflatten(
            [a if a is b or _equal(a, b) else self._chosen(user, a, b) for a, b in pairs], structure
        )

    def _chosen(self, user: fx.Node, learning: Any, evaluating: Any) -> fx.Node:
        with self.graph.inserting_before(user):
            mode = self.graph.create_node("get_attr", _MODE)
            node = self.graph.call_function(by_mode, (mode, learning, evaluating))
        home = learning if isinstance(learning, fx.Node) else user  # a constant is its user's
        node.meta["nn_module_stack"] = home.meta.get("nn_module_stack")
        return node

    def add(self, other: fx.Node, before: fx.Node) -> None:
        """Do what only evaluation does."""
        with self.graph.inserting_before(before):
            self.place[other] = self.graph.node_copy(other, self.place.__getitem__)
        self.gate(self.place[other], False)

    def gate(self, node: fx.Node, training: bool) -> None:
        """Do an operation in one mode alone; attributes are read in both."""
        if node.op == "get_attr":
            return
        if node.op != "call_function":
            raise ValueError(f"its forward has another {node.op} in training than in evaluation")
        with self.graph.inserting_before(node):
            mode = self.graph.create_node("get_attr", _MODE)
        operation: Any = node.target
        node.args, node.target = (mode, *node.args), in_mode(operation, training)
        if _is_plain(operation):
            self.gated.append(node)

    def sink(self) -> None:
        """Do these operations where their results are read, and not before: what they are given
        exists in both modes and can cross a cut."""
        for node in sorted(self.gated, reverse=True):  # nodes compare by their places
            if node.users:
                min(node.users).prepend(node)


def _is_plain(operation: Any) -> bool:
    """Whether it may be done later: it changes nothing and draws no random numbers."""
    schema = getattr(operation, "_schema", None)
    if schema is None:
        return isinstance(operation, FunctionType) or operation.__module__ == "_operator"
    return not schema.is_mutable and torch.Tag.nondeterministic_seeded not in operation.tags


def _full(node: fx.Node) -> tuple[Any, ...]:
    """Its positional arguments with those that were left to their defaults."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return node.args
    known = [a for a in schema.arguments[len(node.args) :] if not a.kwarg_only]
    missing = [a for a in known if a.name not in node.kwargs]
    if len(missing) < len(known):
        return node.args
    return (*node.args, *(argument.default_value for argument in missing))


def _key(node: fx.Node) -> tuple[str, ...]:
    """What an operation does, on which weights, without its other operands; equal in two traces."""
    if node.op == "output":
        return (node.op,)
    read = (str(each.target) for each in node.all_input_nodes if each.op == "get_attr")
    if isinstance(node.target, FunctionType):  # of this process: its address says nothing
        return node.target.__name__, node.target.__doc__ or "", *read
    return node.op, str(node.target), *read


def _equal(one: Any, other: Any) -> bool:
    return type(one) is type(other) and not isinstance(one, fx.Node) and bool(one == other)


def _is_leaf(value: Any) -> bool:
    return not isinstance(value, tuple | list | dict)
