"""A backward in two halves (zero bubble): first the inputs' gradients, later the weights'.

The first half goes back from the outputs to the inputs and notes what arrives at every node
behind which only weights lie; the second goes from those nodes to the weights, so nothing is
computed twice. A weight that is used in several such nodes, or handed on, is found by the whole
way once more.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, Node

Tensors = tuple[Tensor, ...]


@dataclass(frozen=True, slots=True)
class Deferred:
    """What the second half needs: per node the weights (by index) behind it and what arrived
    there, and the weights that need the whole way."""

    outputs: Tensors
    gradients: Tensors
    groups: dict[Node, list[int]]
    arrived: dict[Node, tuple[Tensor | None, ...]] = field(default_factory=dict)
    whole: tuple[int, ...] = ()

    @property
    def held(self) -> list[Tensor]:
        """The gradients that wait."""
        arrived = [one for values in self.arrived.values() for one in values if one is not None]
        return arrived + (list(self.gradients) if self.whole else [])


def backward_input(
    outputs: Tensors, inputs: Tensors, weights: Tensors, gradients: Tensors
) -> tuple[Sequence[Tensor | None], Deferred]:
    """Gradients of the inputs (None where the outputs do not depend on one), and the rest."""
    if not inputs or not outputs:
        return [None] * len(inputs), Deferred(
            outputs, gradients, {}, {}, tuple(range(len(weights)))
        )
    users = _users(outputs)
    through = _reaching(users, inputs)
    deferred = _deferred(outputs, gradients, weights, users, through)
    hooks = [node.register_prehook(_note(deferred.arrived, node)) for node in deferred.groups]
    try:
        found = torch.autograd.grad(
            outputs, inputs, gradients, retain_graph=True, allow_unused=True
        )
    finally:
        for hook in hooks:
            hook.remove()
    return found, deferred


def backward_weight(weights: Tensors, deferred: Deferred) -> None:
    """Add the gradients of the weights to their `grad`, each as soon as it is made; a weight on
    which the outputs do not depend keeps what it has. What arrived at a node is let go with it."""
    if deferred.whole and deferred.outputs:
        wanted = [weights[index] for index in deferred.whole]
        _add(deferred.outputs, deferred.gradients, wanted, retain_graph=True)
    for node, indices in deferred.groups.items():
        arrived = list(enumerate(deferred.arrived.pop(node, ())))
        edges = tuple(GradientEdge(node, at) for at, value in arrived if value is not None)
        values = tuple(value for _, value in arrived if value is not None)
        if edges:
            _add(edges, values, [weights[index] for index in indices], retain_graph=False)


def _add(
    starts: Sequence[Tensor] | Sequence[GradientEdge],
    values: Tensors,
    wanted: Sequence[Tensor],
    retain_graph: bool,
) -> None:
    torch.autograd.backward(starts, values, inputs=wanted, retain_graph=retain_graph)


def _deferred(
    outputs: Tensors,
    gradients: Tensors,
    weights: Tensors,
    users: dict[Node, list[Node]],
    through: set[Node],
) -> Deferred:
    groups: dict[Node, list[int]] = defaultdict(list)
    whole = []
    for index, weight in enumerate(weights):
        met = _first_met(_node(weight), users, through)
        handed_on = any(weight is output for output in outputs)
        if len(met) == 1 and not handed_on:
            groups[met.pop()].append(index)
        else:
            whole.append(index)
    return Deferred(outputs, gradients, dict(groups), {}, tuple(whole))


def _users(outputs: Tensors) -> dict[Node, list[Node]]:
    """node -> the nodes that hand it a gradient, over the whole graph behind the outputs."""
    users: dict[Node, list[Node]] = {}
    pending = [output.grad_fn for output in outputs if output.grad_fn is not None]
    for root in pending:
        users.setdefault(root, [])
    seen = set(pending)
    while pending:
        node = pending.pop()
        for behind, _ in node.next_functions:
            if behind is not None:
                users.setdefault(behind, []).append(node)
                if behind not in seen:
                    seen.add(behind)
                    pending.append(behind)
    return users


def _reaching(users: dict[Node, list[Node]], inputs: Tensors) -> set[Node]:
    """The nodes on a way from the outputs to an input."""
    pending = [node for tensor in inputs if (node := _node(tensor)) in users]
    reached = set(pending)
    while pending:
        for user in users[pending.pop()]:
            if user not in reached:
                reached.add(user)
                pending.append(user)
    return reached


def _first_met(start: Node, users: dict[Node, list[Node]], through: set[Node]) -> set[Node]:
    """The nodes on a way to an input at which the ways from `start` arrive first."""
    met: set[Node] = set()
    pending, seen = [start], {start}
    while pending:
        node = pending.pop()
        above = users.get(node, [])
        if not above and node is not start:
            return set()  # an output that no input has a part in
        for user in above:
            if user in through:
                met.add(user)
            elif user not in seen:
                seen.add(user)
                pending.append(user)
    return met


def _node(leaf: Tensor) -> Node:
    """The node that ends at a tensor which requires a gradient."""
    node = torch.autograd.graph.get_gradient_edge(leaf).node
    assert node is not None
    return node


def _note(
    arrived: dict[Node, tuple[Tensor | None, ...]], node: Node
) -> Callable[[tuple[Tensor | None, ...]], None]:
    def hook(gradients: tuple[Tensor | None, ...]) -> None:
        arrived[node] = tuple(gradients)

    return hook
