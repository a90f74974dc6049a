"""Takes what an operation gives as a tuple apart behind it, so that only tensors are left to cross
a cut: the state of a recurrent layer, say, that the model returns at its end."""

import operator
from collections.abc import Mapping
from typing import Any

from torch import fx

Parts = tuple["Parts | None", ...] | list["Parts | None"]
"""What is inside a tuple or a list: again such, or something else (None)."""


def parts_of(value: Any) -> Parts | None:
    """None where the value is no plain tuple or list, or an empty one."""
    if type(value) not in (tuple, list) or not value:
        return None
    found: Parts = type(value)(map(parts_of, value))
    return found


def unpack(graph: fx.Graph, packed: Mapping[fx.Node, Parts]) -> bool:
    """Give every reader of a tuple its parts; whether there was any to give."""
    waiting = {node: parts for node, parts in packed.items() if not _is_unpacked(node)}
    found = bool(waiting)
    while waiting:
        node = next(iter(waiting))
        parts = waiting.pop(node)
        if node.users:  # else it was a part that is given anew
            waiting |= _unpack(graph, node, parts)
    return found


def _unpack(graph: fx.Graph, node: fx.Node, parts: Parts) -> dict[fx.Node, Parts]:
    """The nodes of those parts that are packed again."""
    readers, items, last = [*node.users], [], node
    for index in range(len(parts)):
        with graph.inserting_after(last):
            last = graph.call_function(operator.getitem, (node, index))
        last.meta["nn_module_stack"] = node.meta.get("nn_module_stack")
        items.append(last)
    whole: Any = tuple(items) if isinstance(parts, tuple) else items
    for reader in readers:
        if _is_item(reader):
            reader.replace_all_uses_with(items[reader.args[1]])  # type: ignore[index]
            graph.erase_node(reader)
        else:
            reader.args = fx.map_arg(reader.args, lambda n: whole if n is node else n)
            reader.kwargs = fx.map_arg(reader.kwargs, lambda n: whole if n is node else n)
    for item in items:
        if not item.users:
            graph.erase_node(item)
    return {item: inner for item, inner in zip(items, parts, strict=True) if inner and item.users}


def _is_item(node: fx.Node) -> bool:
    return node.target is operator.getitem and isinstance(node.args[1], int)


def _is_unpacked(node: fx.Node) -> bool:
    """Whether its parts alone are read, directly behind it; a list that is asked to do something
    stays one."""
    if node.op not in ("call_function", "call_module", "call_method"):
        return True
    if any(user.op == "call_method" for user in node.users):
        return True
    follower = node.next
    for _ in node.users:
        if not (_is_item(follower) and follower.args[0] is node):
            return False
        follower = follower.next
    return True
