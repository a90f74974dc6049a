"""A model as layers: the stretches between the places where it can soundly be cut.

Behind an operation the model can be cut if, across the cut,

    only tensors are alive,
    no parameter (or buffer that changes) is used on both sides,
    nothing made before it is changed in place after it.

Everything between two such cuts is one layer, so any choice of cuts is sound.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, fx, nn

from workers.definitions.record import Record, TensorSpec, fold_sizes, record
from workers.definitions.trace import tensors_of, trace, untouched

Nodes = tuple[fx.Node, ...]


@dataclass(frozen=True, slots=True)
class ModelLayer:
    """One layer; `output_bytes` are those of the tensors that it hands on."""

    name: str
    kind: str
    output_bytes: int
    parameter_bytes: int
    nodes: Nodes = ()


@dataclass(frozen=True, slots=True)
class LayeredModel:
    """The layers in running order and the edges (producer, consumer) between them.

    model    owns every parameter and buffer by the model's own names
    graph    None where the model is one layer that runs as it is
    bundles  the nodes alive before each layer: bundles[0] is the model's input
    specs    the same bundles as shapes and dtypes
    """

    model: nn.Module
    graph: fx.Graph | None
    layers: tuple[ModelLayer, ...]
    edges: tuple[tuple[int, int], ...]
    bundles: tuple[Nodes, ...]
    specs: tuple[tuple[TensorSpec, ...], ...]
    notes: tuple[str, ...] = ()


def layered(model: nn.Module, example: Tensor) -> LayeredModel:
    """The layers of `model` for inputs of the example's shape; falls back to one layer.

    The result may hold a copy of `model`; the model's state is as before. The model must run
    on the example.
    """
    traced = trace(model, example)
    if traced.graph is None:
        return _one_layer(model, example, traced.notes)
    runner = fx.GraphModule(traced.model, traced.graph)
    buffers = {name: buffer.clone() for name, buffer in runner.named_buffers()}
    with untouched(runner):
        seen = record(runner.train(), example.clone())
        changed = {n for n, b in runner.named_buffers() if not torch.equal(b, buffers[n])}
    fold_sizes(runner.graph, seen.sizes)
    return _Cutter(runner, seen, changed).layered(traced.model, traced.notes)


def _one_layer(model: nn.Module, example: Tensor, notes: tuple[str, ...]) -> LayeredModel:
    with untouched(model), torch.no_grad():
        output = sum(tensor.nbytes for tensor in tensors_of(model.train()(example.clone())))
    name = type(model).__name__
    layer = ModelLayer(name, name, output, _num_bytes(model.parameters()))
    return LayeredModel(model, None, (layer,), (), ((),), ((TensorSpec.of(example),),), notes)


def _num_bytes(parameters: Iterable[Tensor]) -> int:
    """Bytes of those that are trained, each once."""
    return sum(p.nbytes for p in {id(p): p for p in parameters}.values() if p.requires_grad)


class _Cutter:
    """Finds the sound cuts of one recorded graph. A cut `c` is before operation `c`."""

    def __init__(self, runner: fx.GraphModule, seen: Record, changed: set[str]) -> None:
        self.runner, self.seen, self.changed = runner, seen, changed
        self.operations = [n for n in runner.graph.nodes if n.op.startswith("call_")]
        self.place = {node: index for index, node in enumerate(self.operations)}
        self.input = next(n for n in runner.graph.nodes if n.op == "placeholder")
        self.place[self.input] = -1
        self.end = len(self.operations)

    def layered(self, model: nn.Module, notes: tuple[str, ...]) -> LayeredModel:
        blocked = {cut for first, last in self._joined() for cut in range(first + 1, last + 1)}
        cuts = [0, *(cut for cut in range(1, self.end) if cut not in blocked), self.end]
        groups = [tuple(self.operations[a:b]) for a, b in pairwise(cuts) if b > a]
        bundles = tuple(self._alive(cut) for cut in cuts[:-1])
        specs = tuple(tuple(self.seen.specs[n] for n in bundle) for bundle in bundles)
        names = _unique([self._name(group) for group in groups])
        layers = tuple(map(self._layer, names, groups))
        edges = self._edges(groups)
        return LayeredModel(model, self.runner.graph, layers, edges, bundles, specs, notes)

    def _joined(self) -> Iterator[tuple[int, int]]:
        """(first, last) operations that must be on the same side of every cut."""
        for node in self.operations:
            if node not in self.seen.specs:
                yield self.place[node], self._last_use(node)
        changed_attributes = set()
        for node, changer in self.seen.changes:
            if node.op == "get_attr":
                changed_attributes.add(str(node.target))
            else:
                yield self.place[node], self.place[changer]
        for users in self._users_of_state(changed_attributes | self.changed).values():
            yield min(users), max(users)

    def _users_of_state(self, changed: set[str]) -> dict[int, list[int]]:
        """The operations that use each parameter and each buffer that changes."""
        names: dict[str, Tensor] = dict(self.runner.named_parameters(remove_duplicate=False))
        buffers = dict(self.runner.named_buffers(remove_duplicate=False))
        names |= {name: buffers[name] for name in changed if name in buffers}
        users: dict[int, list[int]] = defaultdict(list)
        for node in self.runner.graph.nodes:
            for name, state in names.items():
                if node.op == "call_module" and name.startswith(f"{node.target}."):
                    users[id(state)].append(self.place[node])
                elif node.op == "get_attr" and name == node.target:
                    users[id(state)] += [self._place_of(user) for user in node.users]
        return {state: places for state, places in users.items() if places}

    def _place_of(self, node: fx.Node) -> int:
        return self.place.get(node, self.end)

    def _last_use(self, node: fx.Node) -> int:
        return max((self._place_of(user) for user in node.users), default=self.place[node])

    def _alive(self, cut: int) -> Nodes:
        if cut == 0:
            return (self.input,)
        made = (self.input, *self.operations[:cut])
        return tuple(node for node in made if self._last_use(node) >= cut)

    def _edges(self, groups: list[Nodes]) -> tuple[tuple[int, int], ...]:
        layer_of = {node: index for index, group in enumerate(groups) for node in group}
        layer_of[self.input] = 0
        pairs = {
            (layer_of[node], layer_of[user])
            for node in layer_of
            for user in node.users
            if user in layer_of
        }
        return tuple(sorted((a, b) for a, b in pairs if a != b))

    def _layer(self, name: str, group: Nodes) -> ModelLayer:
        stop = self.place[group[-1]] + 1
        made = (self.input, *group) if group[0] is self.operations[0] else group
        handed_on = [node for node in made if self._last_use(node) >= stop]
        output = sum(self.seen.specs[n].num_bytes for n in handed_on if n in self.seen.specs)
        return ModelLayer(name, self._kind(group), output, self._parameter_bytes(group), group)

    def _parameter_bytes(self, group: Nodes) -> int:
        return _num_bytes(p for node in group for p in self._parameters(node))

    def _parameters(self, node: fx.Node) -> list[nn.Parameter]:
        """The parameters that an operation uses itself."""
        if node.op == "call_module":
            return list(self.runner.get_submodule(str(node.target)).parameters())
        direct = [n for n in node.all_input_nodes if n.op == "get_attr"]
        values = [_attribute(self.runner, str(n.target)) for n in direct]
        return [value for value in values if isinstance(value, nn.Parameter)]

    def _name(self, group: Nodes) -> str:
        """The module path of the layer's first operation with parameters, else of its first."""
        owners = [node for node in group if self._parameters(node)]
        node = (owners or list(group))[0]
        if node.op == "call_module":
            return str(node.target)
        path = next(reversed(node.meta.get("nn_module_stack") or [""]))
        return f"{path}.{_operation(node)}" if path else _operation(node)

    def _kind(self, group: Nodes) -> str:
        """What it does, in running order, its operations with parameters first of all."""
        owners = [node for node in group if self._parameters(node)] or list(group)
        kinds = list(dict.fromkeys(self._kind_of(node) for node in owners))
        return "+".join(kinds[:3]) + ("+…" if len(kinds) > 3 else "")

    def _kind_of(self, node: fx.Node) -> str:
        if node.op == "call_module":
            return type(self.runner.get_submodule(str(node.target))).__name__
        return _operation(node)


def _operation(node: fx.Node) -> str:
    return str(getattr(node.target, "__name__", node.target))


def _attribute(module: nn.Module, path: str) -> object:
    owner, _, name = path.rpartition(".")
    return getattr(module.get_submodule(owner), name)


def _unique(names: list[str]) -> list[str]:
    seen: Counter[str] = Counter()
    result = []
    for name in names:
        seen[name] += 1
        result.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return result
