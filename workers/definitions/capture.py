"""Captures a model as ATen operations (torch.export): for what stand-ins cannot pass through."""

import logging
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from difflib import SequenceMatcher
from io import StringIO
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from workers.definitions.module_state.contents import equal_values, values
from workers.definitions.module_state.steady import traced_steadily
from workers.definitions.module_state.twin import twin

_OF_NO_EFFECT = frozenset({"_assert_tensor_metadata", "_guards_fn"})
_MODE, _CONSTANT = "training", "constant_"


def captured(model: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[nn.Module, fx.Graph]:
    """A copy of `model` (parameters are shared) and its graph, for both modes.

    Raises `ValueError` where training and evaluation differ in more than constants, or where the
    forward changes what the graph does not see, and whatever torch.export raises.
    """
    owner = twin(model)
    programs = traced_steadily(
        model, lambda copied: _exported(copied, inputs), _are_equal, sees_buffers=True
    )
    learning, evaluating = (plain_graph(program, owner) for program in programs)
    _join_modes(learning, evaluating)
    learning.lint()
    return owner, learning


def _exported(model: nn.Module, inputs: tuple[Tensor, ...]) -> ExportedProgram:
    """The program. Where there are values, the model's attributes become those that a forward
    leaves, which torch.export itself puts back; on shapes alone not every model runs."""
    has_values = not any(isinstance(t, FakeTensor) or t.is_meta for t in inputs)
    with _quiet():
        program = torch.export.export(model, inputs, strict=False)
        if has_values:
            with torch.no_grad(), torch.random.fork_rng():
                model(*(tensor.clone() for tensor in inputs))
    return program


def _are_equal(one: ExportedProgram, other: ExportedProgram) -> bool:
    mine, theirs = one.constants, other.constants
    return (
        str(one.graph) == str(other.graph)
        and mine.keys() == theirs.keys()
        and all(equal_values(values(mine[name]), values(theirs[name])) for name in mine)
    )


def plain_graph(program: ExportedProgram, model: nn.Module) -> fx.Graph:
    """The program's graph with weights read from `model`, which is given its constants."""
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    lifted = {s.arg.name: s for s in program.graph_signature.input_specs if hasattr(s.arg, "name")}
    for node in program.graph.nodes:
        if node.op == "placeholder":
            copies[node] = _placeholder(graph, node, lifted[node.name], program, model)
        elif node.op == "output":
            _output(graph, program, copies)
        elif node.op == "get_attr":
            model.add_module(str(node.target), getattr(program.graph_module, str(node.target)))
            copies[node] = graph.node_copy(node)
        elif getattr(node.target, "__name__", "").split(".")[0] not in _OF_NO_EFFECT:
            copies[node] = graph.node_copy(node, copies.__getitem__)
    return graph


def captured_constants(model: nn.Module) -> set[str]:
    """The names of the buffers that `plain_graph` gave the model."""
    return {
        name
        for name in model._buffers
        if name.startswith(_CONSTANT) and name in model._non_persistent_buffers_set
    }


def module_path(node: fx.Node) -> str:
    """The path of the module that the operation stands in ("" for the model itself)."""
    stack = node.meta.get("nn_module_stack") or {"": ("", None)}
    path = str(next(reversed(stack.values()))[0])
    return re.sub(r"@\d+", "", path.removeprefix("L['self']").removeprefix("."))


def _placeholder(
    graph: fx.Graph, node: fx.Node, spec: Any, program: ExportedProgram, model: nn.Module
) -> fx.Node:
    if spec.kind is InputKind.USER_INPUT:
        return graph.placeholder(node.name)
    if spec.kind is InputKind.CONSTANT_TENSOR:
        name = _CONSTANT + str(spec.target).replace(".", "_")
        model.register_buffer(name, program.constants[spec.target], persistent=False)
        return graph.create_node("get_attr", name)
    if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER):
        return graph.create_node("get_attr", str(spec.target))
    raise ValueError(f"it holds {node.name}, which is no tensor")


def _output(graph: fx.Graph, program: ExportedProgram, copies: dict[fx.Node, fx.Node]) -> None:
    results = []
    by_name = {node.name: copy for node, copy in copies.items()}
    for spec in program.graph_signature.output_specs:
        if spec.kind is not OutputKind.USER_OUTPUT:
            raise ValueError(f"it changes {spec.target} in a way that cannot be cut")
        name = getattr(spec.arg, "name", None)
        results.append(by_name[name] if name else getattr(spec.arg, "value", None))
    structure = program.call_spec.out_spec
    if structure is None or structure.is_leaf():
        graph.output(results[0])
    else:
        graph.output(graph.call_function(_rebuilder(structure), tuple(results)))


def _rebuilder(structure: TreeSpec) -> Callable[..., Any]:
    def rebuild(*leaves: Any) -> Any:
        return tree_unflatten(leaves, structure)

    return rebuild


def _join_modes(learning: fx.Graph, evaluating: fx.Graph) -> None:
    """Let `learning` do what `evaluating` does when the module is in evaluation mode."""
    ours, theirs = list(learning.nodes), list(evaluating.nodes)
    matcher = SequenceMatcher(None, [*map(_key, ours)], [*map(_key, theirs)], autojunk=False)
    partner: dict[fx.Node, fx.Node] = {}
    for what, i, j, k, end in matcher.get_opcodes():
        if what == "equal":
            partner |= dict(zip(ours[i:j], theirs[k:end], strict=True))
        elif what != "delete":
            raise ValueError("its forward depends on self.training; nn.Dropout and such do not")
    for node in ours:
        if node in partner:
            _join_constants(learning, node, partner)
        elif node.op == "call_function" and _changes_in_place(node):
            _only_in_training(learning, node)


def _join_constants(graph: fx.Graph, node: fx.Node, partner: dict[fx.Node, fx.Node]) -> None:
    """Where a constant differs between the modes, choose by mode."""
    mine, structure = tree_flatten((_full(node), node.kwargs), is_leaf=_is_leaf)
    other = tree_flatten((_full(partner[node]), partner[node].kwargs), is_leaf=_is_leaf)[0]
    if len(mine) != len(other):
        raise ValueError("its forward depends on self.training; nn.Dropout and such do not")
    for index, (a, b) in enumerate(zip(mine, other, strict=True)):
        if isinstance(a, fx.Node) or isinstance(b, fx.Node):
            if not isinstance(a, fx.Node) or _same_source(a, partner) is not b:
                raise ValueError("its forward depends on self.training")
        elif a != b:
            mine[index] = _chosen(graph, node, a, b)
    args, kwargs = tree_unflatten(mine, structure)
    node.args, node.kwargs = tuple(args), kwargs


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


def _same_source(node: fx.Node, partner: dict[fx.Node, fx.Node]) -> fx.Node | None:
    """What stands for `node` in evaluation; operations of training alone pass their input on."""
    while node not in partner and node.all_input_nodes:
        node = node.all_input_nodes[0]
    return partner.get(node)


def _chosen(graph: fx.Graph, user: fx.Node, learning: Any, evaluating: Any) -> fx.Node:
    with graph.inserting_before(user):
        mode = graph.create_node("get_attr", _MODE)
        node = graph.call_function(by_mode, (mode, learning, evaluating))
    node.meta["nn_module_stack"] = user.meta.get("nn_module_stack")
    return node


def by_mode(training: bool, learning: Any, evaluating: Any) -> Any:
    """The constant for the module's mode."""
    return learning if training else evaluating


def _only_in_training(graph: fx.Graph, node: fx.Node) -> None:
    """Such as the count of batches of a batch normalisation."""
    with graph.inserting_before(node):
        mode = graph.create_node("get_attr", _MODE)
    operation: Any = node.target
    node.args = (mode, operation, *node.args)
    node.target = when_training


def when_training(training: bool, operation: Callable[..., Tensor], *args: Any) -> Tensor:
    """The operation's result in training; the tensor that it would change otherwise."""
    result: Tensor = operation(*args) if training else args[0]
    return result


def _key(node: fx.Node) -> tuple[str, str]:
    return node.op, str(node.target) if node.op != "output" else ""


def _is_leaf(value: Any) -> bool:
    return not isinstance(value, tuple | list | dict)


def _changes_in_place(node: fx.Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return schema is not None and schema.is_mutable


@contextmanager
def _quiet() -> Iterator[None]:
    """torch.export warns of its own insides and prints them where it fails."""
    with warnings.catch_warnings(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        warnings.simplefilter("ignore")
        before = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        try:
            yield
        finally:
            logging.disable(before)
