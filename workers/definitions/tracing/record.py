"""Runs a traced graph once and notes what each operation gives and what it changes in place."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx

from workers.definitions.tracing.unpacking import Parts, parts_of

_SIZE_METHODS = frozenset({"size", "dim", "numel", "ndimension"})
_SIZE_ATTRIBUTES = frozenset({"shape", "ndim", "dtype", "device"})


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """What a receiver must know about a tensor before it comes; whether it is a weight that several
    stages read."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    requires_grad: bool
    is_weight: bool = False

    @staticmethod
    def of(tensor: Tensor) -> "TensorSpec":
        return TensorSpec(tuple(tensor.shape), tensor.dtype, tensor.requires_grad)

    def fits(self, other: "TensorSpec") -> bool:
        """Whether one may be received in place of the other."""
        return (self.shape, self.dtype) == (other.shape, other.dtype)

    @property
    def num_rows(self) -> int:
        """Samples along its first dimension; 0 of a weight."""
        return 0 if self.is_weight else self.shape[0] if self.shape else 1

    @property
    def num_bytes(self) -> int:
        return torch.Size(self.shape).numel() * self.dtype.itemsize


@dataclass(slots=True)
class Record:
    """`specs`: the nodes whose value is a tensor. `sizes`: the values that depend on sizes
    alone. `changes`: (changed node, node that changed it in place). `changed_buffers`: those
    that the run changed, by name. `packed`: the nodes whose value is a tuple or a list."""

    specs: dict[fx.Node, TensorSpec] = field(default_factory=dict)
    sizes: dict[fx.Node, Any] = field(default_factory=dict)
    changes: list[tuple[fx.Node, fx.Node]] = field(default_factory=list)
    changed_buffers: frozenset[str] = frozenset()
    packed: dict[fx.Node, Parts] = field(default_factory=dict)


class _Recorder(fx.Interpreter):
    """Watches the version counters of the tensors that are alive."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module)
        self.record = Record()

    def run_node(self, n: fx.Node) -> Any:
        before = self._versions()
        value = super().run_node(n)
        after = self._versions()
        changed = [node for node in before if before[node] != after[node]]
        self.record.changes += [(node, n) for node in changed]
        for node in changed:  # what it was written from may have a gradient
            self.record.specs[node] = TensorSpec.of(self.env[node])
        if isinstance(value, Tensor):
            self.record.specs[n] = TensorSpec.of(value)
        elif self._is_size(n):
            self.record.sizes[n] = tuple(value) if isinstance(value, torch.Size) else value
        elif (parts := parts_of(value)) is not None and n.op != "output":
            self.record.packed[n] = parts
        return value

    def _versions(self) -> dict[fx.Node, int]:
        return {n: value._version for n, value in self.env.items() if isinstance(value, Tensor)}

    def _is_size(self, node: fx.Node) -> bool:
        if node.op == "call_method":
            return node.target in _SIZE_METHODS
        if node.target is torch.ops.aten.sym_size.int:
            return True
        if node.target is getattr:
            return node.args[1] in _SIZE_ATTRIBUTES
        inputs = node.all_input_nodes
        known = self.record.sizes
        return node.op == "call_function" and bool(inputs) and all(n in known for n in inputs)


def record(module: fx.GraphModule, inputs: tuple[Tensor, ...]) -> Record:
    """Run `module` with gradients enabled; what it did, operation by operation."""
    recorder = _Recorder(module)
    buffers = dict(module.named_buffers(remove_duplicate=False))
    before = {name: buffer._version for name, buffer in buffers.items()}
    with torch.enable_grad():
        recorder.run(*inputs)
    seen, after = recorder.record, dict(module.named_buffers(remove_duplicate=False))
    seen.changed_buffers = frozenset(
        name
        for name, buffer in buffers.items()
        if after.get(name) is not buffer or buffer._version != before[name]
    )
    return seen


def fold_sizes(graph: fx.Graph, sizes: dict[fx.Node, Any]) -> None:
    """Put constants in place of sizes, so that only tensors are left to cross a cut; right
    as long as every input has the example's shape."""
    for node in graph.nodes:
        if node not in sizes:
            node.args = fx.map_arg(node.args, lambda n: sizes.get(n, n))
            node.kwargs = fx.map_arg(node.kwargs, lambda n: sizes.get(n, n))
    for node in reversed(list(sizes)):
        graph.erase_node(node)
