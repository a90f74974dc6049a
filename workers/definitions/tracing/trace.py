"""A model as a list of operations in running order, or none where tracing is not sound."""

from collections import defaultdict
from dataclasses import dataclass

import torch
from torch import Tensor, fx, nn

from backend.profiles.profile import ONE_LAYER, Tracing
from workers.definitions.module_state.keepers import check_keepers
from workers.definitions.module_state.twin import twin
from workers.definitions.module_state.untouched import untouched
from workers.definitions.samples import dense, tensors_of
from workers.definitions.tracing.capture import captured
from workers.definitions.tracing.own_functions import own_functions
from workers.definitions.tracing.reasons import Reason, Untraceable, reason_of
from workers.definitions.tracing.symbolic import symbolic

Inputs = tuple[Tensor, ...]
Made = tuple[nn.Module, fx.Graph, tuple[str, ...]]
"""The module that owns what the graph reads, the graph, and notes."""
CLOSELY, ROUGHLY = 1e-5, 2e-2
"""How far a trace may be from its model, relative to the largest value: by the rounding of
float32, or of bfloat16 where autocast rounds."""


@dataclass(frozen=True, slots=True)
class Traced:
    """`model` owns every parameter by its own name; `graph` runs it (None: not traceable).
    `tracing`: how the graph was found; the paths of modules make the layers of a fine-grained
    one (`by_path`)."""

    model: nn.Module
    graph: fx.Graph | None
    notes: tuple[str, ...] = ()
    by_path: bool = False
    tracing: Tracing = ""


def trace(model: nn.Module, inputs: Inputs, tracing: Tracing = "") -> Traced:
    """Trace `model`: with stand-ins through every submodule, else captured as operations,
    else with the submodules whole. A model that is a graph already is taken as it is ("exported").

    A trace counts only if training and evaluation mode give one graph and if running it
    gives what the model gives on `inputs`; otherwise `graph` is None and a note says why.
    Modules that share weights are captured, because then the weight can cross a cut. Where
    `tracing` is given, somebody has tried before, and the model may consist of shapes.
    """
    if isinstance(model, fx.GraphModule):
        graph = copied_graph(model.graph)
        return Traced(twin(model), graph, by_path=True, tracing="exported")
    if tracing:
        return _traced(_made(model, inputs, tracing), tracing)
    first, reason = _tried(model, inputs, "symbolic")
    if first is not None and not shared_by_modules(*first[:2]):
        return _traced(first, "symbolic")
    second, other = _tried(model, inputs, "captured")
    if second is not None:
        return _traced(second, "captured")
    if first is not None:
        return _traced(first, "symbolic", f"Layers that share weights are one layer: {other}.")
    third, hidden = _tried(model, inputs, "partly")
    if third is not None:
        return _traced(third, "partly")
    fourth, last = _tried(model, inputs, "submodules")
    if fourth is not None:
        return _traced(fourth, "submodules", f"Submodules are kept whole: {hidden}.")
    return Traced(model, None, (uncuttable(reason, other, last),))


def uncuttable(stand_ins: Reason, operations: Reason, parts: Reason) -> str:
    """Why a model is one layer: what each attempt met, and what to change."""
    found = list(dict.fromkeys((stand_ins, parts, operations)))
    told = f"{ONE_LAYER}: {found[0]}."
    if operations != found[0]:
        told += f" Captured as operations by torch.export: {operations}."
    if parts not in (stand_ins, operations):
        told += f" With submodules kept whole: {parts}."
    return " ".join((told, *dict.fromkeys(each.advice for each in found if each.advice)))


def _traced(made: Made, tracing: Tracing, *notes: str) -> Traced:
    model, graph, own = made
    return Traced(model, graph, (*own, *notes), by_path=tracing == "captured", tracing=tracing)


def _made(model: nn.Module, inputs: Inputs, tracing: Tracing) -> Made:
    with untouched(model), own_functions() as met:
        if tracing == "captured":
            return *captured(model, inputs), met.notes
        assert tracing in ("symbolic", "partly", "submodules"), "somebody has tried it"
        owner, graph, notes = symbolic(model, inputs, tracing)
        return owner, graph, (*notes, *met.notes)


def copied_graph(graph: fx.Graph) -> fx.Graph:
    """The same operations in a graph that may be changed."""
    copied = fx.Graph()
    copied.output(copied.graph_copy(graph, {}))
    return copied


def _tried(model: nn.Module, inputs: Inputs, tracing: Tracing) -> tuple[Made | None, Reason]:
    """A sound trace, or None and why there is none."""
    try:
        traced, graph, notes = _made(model, inputs, tracing)
        if not any(node.op.startswith("call_") for node in graph.nodes):
            raise Untraceable("its forward has no operation")
        if not any(tensor.is_meta for tensor in (*inputs, *model.parameters())):
            _check_same_output(model, fx.GraphModule(traced, graph), inputs)
            with torch.no_grad():
                check_keepers(model, graph, inputs)
    except Exception as error:  # tracing runs the user's code with stand-ins
        return None, reason_of(error)
    return (traced, graph, notes), Reason("", "")


def shared_by_modules(model: nn.Module, graph: fx.Graph) -> bool:
    """Whether a module whose weights others use too is called as a whole."""
    whole, users = set(), defaultdict(set)
    names = dict(model.named_parameters(remove_duplicate=False))
    for node in graph.nodes:
        if node.op == "call_module":
            for parameter in model.get_submodule(str(node.target)).parameters():
                users[id(parameter)].add(node)
                whole.add(id(parameter))
        elif node.op == "get_attr" and node.target in names:
            users[id(names[node.target])] |= set(node.users)
    return any(len(users[parameter]) > 1 for parameter in whole)


def _check_same_output(model: nn.Module, runner: nn.Module, inputs: Inputs) -> None:
    """In both modes: outputs and buffers; in training, the gradient of every weight too, since
    stand-ins do not see `torch.no_grad`."""
    weights = [w for w in model.parameters() if w.requires_grad]
    buffers = sorted(dict(model.named_buffers()).keys() & dict(runner.named_buffers()).keys())
    for mode in (True, False):
        with own_functions():  # a gradient cannot be asked for through reentrant checkpoints
            mine = _results(model, inputs, weights, buffers, mode)
        theirs = _results(runner, inputs, weights, buffers, mode)
        if len(mine) != len(theirs) or not all(map(alike, mine, theirs)):
            raise Untraceable(
                "its forward does something that tracing does not see",
                "Such are numbers that Python computes from tensors' values, .data, and the "
                "gradient of an autograd.Function: move them into a submodule, to be kept whole.",
            )


def _results(
    module: nn.Module,
    inputs: Inputs,
    weights: list[nn.Parameter],
    buffers: list[str],
    mode: bool,
) -> list[Tensor | None]:
    """Outputs, buffers, and gradients of a random mixture of the outputs (None: unused)."""
    with untouched(module), torch.set_grad_enabled(mode):
        torch.manual_seed(0)
        outputs = tensors_of(module.train(mode)(*(tensor.clone() for tensor in inputs)))
        state = [module.get_buffer(name).clone() for name in buffers]
        torch.manual_seed(0)
        of = [output for output in outputs if mode and output.requires_grad]  # or a weight
        mixed = [(output * torch.randn_like(output)).sum() for output in of]
        found = torch.autograd.grad(mixed, weights, allow_unused=True) if mixed and weights else ()
    gradients = (None if gradient is None else dense(gradient) for gradient in found)
    return [*(output.detach() for output in outputs), *state, *gradients]


def alike(one: Tensor | None, other: Tensor | None) -> bool:
    """Whether they are equal but for rounding."""
    if one is None or other is None:
        return one is other
    scale = float(one.abs().max()) if one.is_floating_point() and one.numel() else 0.0
    near = ROUGHLY if torch.is_autocast_enabled(one.device.type) else CLOSELY
    return torch.allclose(one, other, rtol=10 * near, atol=near * max(scale, 1e-3), equal_nan=True)
