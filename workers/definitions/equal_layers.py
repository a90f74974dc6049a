"""Which layers do the same work: equal operations on equal shapes, under other names."""

from collections.abc import Hashable, Iterator
from typing import Any

from torch import Tensor, fx, nn

from workers.definitions.cut import cut
from workers.definitions.layers import LayeredModel
from workers.definitions.tracing.record import TensorSpec

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def equal_layers(layered: LayeredModel) -> tuple[int, ...]:
    """Per layer the first one that does the same; layers whose sameness cannot be told stand for
    themselves. The last one, which has the loss, always does."""
    first: dict[Hashable, int] = {}
    last = len(layered.layers) - 1
    return tuple(
        number if number == last else first.setdefault(_work(layered, number), number)
        for number in range(len(layered.layers))
    )


def _work(layered: LayeredModel, number: int) -> Hashable:
    """All that the seconds of a layer depend on."""
    module = cut(layered, number, number + 1)
    if not isinstance(module, fx.GraphModule):
        return number
    try:
        found = layered.specs[number], tuple(_operations(module))
        hash(found)
    except _CannotTell:
        return number
    return found


class _CannotTell(Exception):
    """Something inside has no plain description."""


def _operations(module: fx.GraphModule) -> Iterator[Hashable]:
    """Each node with its position in place of its name."""
    place: dict[fx.Node, int] = {}
    for node in module.graph.nodes:
        place[node] = len(place)
        target: Hashable = node.target if node.op.startswith("call_") else ""
        if node.op == "call_module":
            target = tuple(_module(module.get_submodule(str(node.target))))
        elif node.op == "get_attr":
            target = _value(_attribute(module, str(node.target)), place)
        yield node.op, target, _value(node.args, place), _value(node.kwargs, place)


def _attribute(module: nn.Module, path: str) -> Any:
    *parents, name = path.split(".")
    return getattr(module.get_submodule(".".join(parents)), name)


def _module(module: nn.Module) -> Iterator[Hashable]:
    """Its class, its configuration, its tensors and its children."""
    kind: Hashable = (type(module).__module__, type(module).__qualname__, id(type(module)))
    yield kind
    for name, value in sorted(vars(module).items()):
        if name in ("_parameters", "_buffers"):
            yield name, tuple((key, _value(held, {})) for key, held in value.items())
        elif name == "_modules":
            children = ((k, c) for k, c in value.items() if c is not None)
            yield name, tuple((key, tuple(_module(child))) for key, child in children)
        else:
            yield name, _value(value, {})


def _value(value: Any, place: dict[fx.Node, int]) -> Hashable:
    """Something equal for equal values. Raises `_CannotTell`."""
    if isinstance(value, fx.Node):
        return "node", place[value]
    if isinstance(value, Tensor):
        return type(value).__name__, TensorSpec.of(value)
    if isinstance(value, _PLAIN):
        return type(value), value
    if isinstance(value, tuple | list | set | frozenset):
        return type(value).__name__, tuple(_value(each, place) for each in value)
    if isinstance(value, dict):
        return "dict", tuple((_value(k, place), _value(v, place)) for k, v in value.items())
    if isinstance(value, slice):
        return "slice", _value((value.start, value.stop, value.step), place)
    if isinstance(value, nn.Module):
        return tuple(_module(value))
    try:
        hash(value)  # the same function, type, or object of a configuration
    except TypeError:
        raise _CannotTell from None
    return type(value), value
