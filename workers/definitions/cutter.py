"""Finds the sound cuts of one recorded graph, and makes layers of what lies between them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor, fx, nn

from backend.units import bytes_text
from workers.definitions.layers import LayeredModel, ModelLayer, Nodes, TiedWeight
from workers.definitions.tracing.modes import by_mode, is_of_one_mode
from workers.definitions.tracing.record import Record, TensorSpec
from workers.definitions.units import Units


class Cutter:
    """A cut `c` is before operation `c`. `carried` are weights that several operations read:
    they count as made by the first of these."""

    def __init__(self, runner: fx.GraphModule, seen: Record, units: Units) -> None:
        self.runner, self.seen, self.units = runner, seen, units
        self.operations = [n for n in runner.graph.nodes if n.op.startswith("call_")]
        self.place = {node: index for index, node in enumerate(self.operations)}
        self.end = len(self.operations)
        self.inputs = [n for n in runner.graph.nodes if n.op == "placeholder"]
        self.place |= dict.fromkeys(self.inputs, -1)
        self.carried = self._carried()
        self.last_use = {
            node: max((self._place_of(user) for user in node.users), default=place)
            for node, place in self.place.items()
        }

    def layered(self, model: nn.Module, notes: tuple[str, ...]) -> LayeredModel:
        cuts = [0, *self._cuts(), self.end]
        groups = [tuple(self.operations[a:b]) for a, b in pairwise(cuts)]
        bundles = (tuple(self.inputs), *(self._alive(cut) for cut in cuts[1:-1]))
        specs = tuple(tuple(map(self._spec, bundle)) for bundle in bundles)
        names = _unique([self._name(group) for group in groups])
        layers = tuple(map(self._layer, names, groups))
        exchanged = tuple(self._exchanged(groups))
        specs_of = ((self._spec(n), made, readers) for n, made, readers in exchanged)
        crossings = tuple(
            (a, b, spec.num_bytes, spec.requires_grad, spec.dtype.itemsize, spec.num_rows)
            for spec, a, b in specs_of
        )
        tied_weights = tuple(
            (owner, readers, str(node.target), self.carried[node].nbytes)
            for node, owner, readers in exchanged
            if node in self.carried
        )
        notes += tuple(_sharing(layers, tied_weights))
        edges = tuple(sorted({(made, read) for made, readers, *_ in crossings for read in readers}))
        graph = self.runner.graph
        scores = self._num_scores()
        return LayeredModel(
            model, graph, layers, edges, bundles, specs, notes, crossings, tied_weights, scores
        )

    def _num_scores(self) -> int | None:
        output = next(node for node in self.runner.graph.nodes if node.op == "output").args[0]
        spec = self.seen.specs.get(output) if isinstance(output, fx.Node) else None
        return spec.shape[-1] if spec is not None and spec.shape else None

    def _cuts(self) -> list[int]:
        """The sound cuts that part two units."""
        blocked = {cut for first, last in self._joined() for cut in range(first + 1, last + 1)}
        chosen, has_weights = [], False
        for cut in range(1, self.end):
            before, after = self.operations[cut - 1], self.operations[cut]
            has_weights |= bool(self._parameters(before))
            same = self.units.label(before) == self.units.label(after)
            full = has_weights and bool(self._parameters(after)) and not self.units.is_whole(after)
            if cut not in blocked and (not same or full):
                chosen.append(cut)
                has_weights = False
        return chosen

    def _joined(self) -> Iterator[tuple[int, int]]:
        """(first, last) operations that must be on the same side of every cut."""
        for node in self.operations:
            if node not in self.seen.specs or is_of_one_mode(node):
                yield self.place[node], self.last_use[node]
        changed = set(self.seen.changed_buffers)
        for node, changer in self.seen.changes:
            if node.op == "get_attr":
                changed.add(str(node.target))
            else:
                yield self.place[node], self.place[changer]
        for users in self._users_of_state(changed):
            yield min(users), max(users)

    def _users_of_state(self, changed: set[str]) -> list[list[int]]:
        """The operations that use each weight of a module that is called as a whole, each buffer
        that changes, and each generator of the model's own."""
        states: dict[str, object] = {**self._weights} | {
            n: b for n, b in self._buffers.items() if n in changed
        }
        whole = {id(self._buffers[name]) for name in changed & self._buffers.keys()}
        users: dict[int, list[int]] = defaultdict(list)
        generators = _generators(self.runner)
        whole |= {id(generator) for generator in generators.values()}
        for node in self.runner.graph.nodes:
            if node.op == "call_module":
                for name, _ in _states_of(self.runner.get_submodule(str(node.target))):
                    if (state := states.get(f"{node.target}.{name}")) is not None:
                        users[id(state)].append(self.place[node])
                        whole.add(id(state))
            elif node.op == "get_attr" and node.target in states | generators:
                state = (states | generators)[str(node.target)]
                users[id(state)] += map(self._place_of, node.users)
        return [places for state, places in users.items() if places and state in whole]

    def _spec(self, node: fx.Node) -> TensorSpec:
        """Of what crosses a cut."""
        return replace(self.seen.specs[node], is_weight=node in self.carried)

    def _carried(self) -> dict[fx.Node, Tensor]:
        """Weights that cross cuts, each by one node; it is placed at its first reader."""
        nodes: dict[int, fx.Node] = {}
        for node in [n for n in self.runner.graph.nodes if n.op == "get_attr"]:
            weight = self._weights.get(str(node.target))
            if weight is None or not weight.requires_grad or not node.users:
                continue
            first = nodes.setdefault(id(weight), node)
            if first is not node:
                node.replace_all_uses_with(first)
        weights: dict[str, Tensor] = {**self._weights}
        carried = {n: weights[str(n.target)] for n in nodes.values() if len(n.users) > 1}
        self.place |= {n: min(self._place_of(user) for user in n.users) for n in carried}
        return carried

    @cached_property
    def _weights(self) -> dict[str, nn.Parameter]:
        return dict(self.runner.named_parameters(remove_duplicate=False))

    @cached_property
    def _buffers(self) -> dict[str, Tensor]:
        return dict(self.runner.named_buffers(remove_duplicate=False))

    def _place_of(self, node: fx.Node) -> int:
        return self.place.get(node, self.end)

    @cached_property
    def _made(self) -> list[fx.Node]:
        """All that can cross a cut, in the order in which it is made."""
        return sorted(self.place, key=self.place.__getitem__)

    def _alive(self, cut: int) -> Nodes:
        return tuple(node for node in self._made if self.place[node] < cut <= self.last_use[node])

    def _exchanged(self, groups: list[Nodes]) -> Iterator[tuple[fx.Node, int, tuple[int, ...]]]:
        """Each tensor that layers exchange, with its producer and its readers."""
        layer_of = {node: index for index, group in enumerate(groups) for node in group}
        layer_of |= dict.fromkeys(self.inputs, 0)
        layer_of |= {node: layer_of[self.operations[self.place[node]]] for node in self.carried}
        end = len(groups) - 1
        for node in self._made:
            found = {layer_of.get(user, end) for user in node.users} - {layer_of[node]}
            if found and node in self.seen.specs:
                yield node, layer_of[node], tuple(sorted(found))

    def _layer(self, name: str, group: Nodes) -> ModelLayer:
        start, stop = self.place[group[0]], self.place[group[-1]] + 1
        made = [n for n in self._made if max(self.place[n], 0) in range(start, stop)]
        handed_on = [node for node in made if self.last_use[node] >= stop]
        output = sum(self.seen.specs[n].num_bytes for n in handed_on if n in self.seen.specs)
        weights = [weight for node in group for weight in self._parameters(node)]
        kind, buffers = self._kind(group), self._buffer_bytes(group)
        trained, frozen = num_bytes(weights), num_bytes(weights, trained=False)
        return ModelLayer(name, kind, output, trained, group, buffers, frozen)

    def _parameters(self, node: fx.Node) -> list[nn.Parameter]:
        """The weights that an operation uses itself, carried ones at their first reader."""
        if node.op == "call_module":
            return list(self.runner.get_submodule(str(node.target)).parameters())
        direct = [n for n in node.all_input_nodes if n.op == "get_attr"]
        own = [n for n in direct if n not in self.carried or self.place[n] == self.place[node]]
        return [self._weights[str(n.target)] for n in own if n.target in self._weights]

    def _buffer_bytes(self, group: Nodes) -> int:
        found: dict[int, Tensor] = {}
        for node in group:
            if node.op == "call_module":
                module = self.runner.get_submodule(str(node.target))
                found |= {id(b): b for b in module.buffers()}
            names = [str(n.target) for n in node.all_input_nodes if n.op == "get_attr"]
            found |= {id(self._buffers[n]): self._buffers[n] for n in names if n in self._buffers}
        return sum(buffer.nbytes for buffer in found.values())

    def _name(self, group: Nodes) -> str:
        """The path of the layer's unit: that of its first operation with weights, else of its
        first; a function outside of a unit adds its own name."""
        node = self._telling(group)[0]
        path = self.units.path(node)
        if self.units.is_unit(node):
            return path
        return f"{path}.{_operation(node)}" if path else _operation(node)

    def _kind(self, group: Nodes) -> str:
        """What it does, in running order, its operations with weights first of all."""
        kinds = list(dict.fromkeys(self._kind_of(node) for node in self._telling(group)))
        return "+".join(kinds[:3]) + ("+…" if len(kinds) > 3 else "")

    def _telling(self, group: Nodes) -> list[fx.Node]:
        """The operations that say what a layer is."""
        owners = [node for node in group if self._parameters(node)]
        return owners or [node for node in group if node.target is not by_mode] or list(group)

    def _kind_of(self, node: fx.Node) -> str:
        if node.op == "call_module" and self.units.label(node) is node:
            return type(self.runner.get_submodule(str(node.target))).__name__
        return (self.units.is_unit(node) and self.units.kind(node)) or _operation(node)


def _sharing(layers: tuple[ModelLayer, ...], tied_weights: Iterable[TiedWeight]) -> Iterator[str]:
    """A sentence per pair of layers that share weights."""
    shared: dict[tuple[int, int], list[TiedWeight]] = defaultdict(list)
    for tie in tied_weights:
        owner, readers, _, _ = tie
        shared[owner, readers[-1]].append(tie)
    for (first, last), found in shared.items():
        names = ", ".join(name for _, _, name, _ in found[:3])
        size = sum(size for _, _, _, size in found)
        yield (
            f"{layers[first].name} and {layers[last].name} share {names}"
            f"{', …' if len(found) > 3 else ''}: owned by the first, sent on with every "
            f"microbatch ({bytes_text(size)} each way)"
        )


def _operation(node: fx.Node) -> str:
    name = str(getattr(node.target, "__name__", node.target))
    return name.split(".")[0] if node.op == "call_function" else name


def _unique(names: list[str]) -> list[str]:
    seen: Counter[str] = Counter()
    result = []
    for name in names:
        seen[name] += 1
        result.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return result


def _states_of(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from module.named_parameters(remove_duplicate=False)
    yield from module.named_buffers(remove_duplicate=False)


def _generators(runner: fx.GraphModule) -> dict[str, torch.Generator]:
    """Those that the graph reads, by the names under which it does."""
    names = {str(node.target) for node in runner.graph.nodes if node.op == "get_attr"}
    found = {name: getattr(runner, name, None) for name in names if "." not in name}
    return {name: each for name, each in found.items() if isinstance(each, torch.Generator)}


def num_bytes(parameters: Iterable[Tensor], trained: bool = True) -> int:
    """Bytes of those that are trained, or of those that are not, each once."""
    known = {id(p): p for p in parameters}.values()
    return sum(p.nbytes for p in known if p.requires_grad is trained)
