"""Captures a model as ATen operations (torch.export): for what stand-ins cannot pass through."""

import logging
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils._pytree import TreeSpec, tree_unflatten

from workers.definitions.module_state.contents import equal_values, values
from workers.definitions.module_state.steady import traced_steadily
from workers.definitions.module_state.twin import twin
from workers.definitions.tracing.modes import join_modes

_OF_NO_EFFECT = frozenset({"_assert_tensor_metadata", "_guards_fn"})
_CONSTANT, _OF_OTHER_MODE = "constant_", "_of_other_mode"


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
    join_modes(learning, evaluating)
    _update_buffers_early(learning)
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
            copies[node] = graph.create_node("get_attr", _with_body(model, program, node))
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


def _with_body(model: nn.Module, program: ExportedProgram, node: fx.Node) -> str:
    """Give the model the graph that an operation runs as a whole; its name there."""
    name, body = str(node.target), getattr(program.graph_module, str(node.target))
    while (there := model._modules.get(name)) is not None and str(there.code) != str(body.code):
        name += _OF_OTHER_MODE
    model.add_module(name, body)
    return name


def _placeholder(
    graph: fx.Graph, node: fx.Node, spec: Any, program: ExportedProgram, model: nn.Module
) -> fx.Node:
    if spec.kind is InputKind.USER_INPUT:
        return graph.placeholder(node.name)
    if spec.kind is InputKind.CONSTANT_TENSOR:
        name, value = _CONSTANT + str(spec.target).replace(".", "_"), program.constants[spec.target]
        while name in model._buffers and not equal_values(
            values(model._buffers[name]), values(value)
        ):
            name += _OF_OTHER_MODE
        model.register_buffer(name, value, persistent=False)
        return graph.create_node("get_attr", name)
    if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER):
        return graph.create_node("get_attr", str(spec.target))
    raise ValueError(f"it holds {node.name}, which is not a tensor")


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


def _update_buffers_early(graph: fx.Graph) -> None:
    """A buffer that the forward gives another tensor is written to behind its last reader, not at
    the end of the forward, where torch.export does it: no layer must reach that far."""
    for node in list(graph.nodes):
        if node.users or getattr(node.target, "__name__", "") != "copy_.default":
            continue
        modes = [each for each in node.all_input_nodes if each.target == "training"]
        given = [each for each in node.all_input_nodes if each not in modes]
        if given[0].op == "get_attr":
            max(*given, *(user for user in given[0].users if user is not node)).append(node)
            for mode in modes:
                node.prepend(mode)


def _rebuilder(structure: TreeSpec) -> Callable[..., Any]:
    def rebuild(*leaves: Any) -> Any:
        return tree_unflatten(leaves, structure)

    rebuild.__doc__ = str(structure)
    return rebuild


@contextmanager
def _quiet() -> Iterator[None]:
    """torch.export warns of its own insides and prints them where it fails. It also notes for each
    operation where it was called, which nobody reads and takes a fifth of its time."""
    with warnings.catch_warnings(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        warnings.simplefilter("ignore")
        before = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        traces, fx.config.do_not_emit_stack_traces = fx.config.do_not_emit_stack_traces, True
        try:
            yield
        finally:
            logging.disable(before)
            fx.config.do_not_emit_stack_traces = traces
