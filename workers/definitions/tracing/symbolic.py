"""Traces a model with stand-ins (torch.fx): modules of torch.nn stay whole, layers by name."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor, fx, nn

from workers.definitions.blueprint.blueprint import mode_of
from workers.definitions.module_state.contents import equal_values, values
from workers.definitions.module_state.module_state import Difference
from workers.definitions.module_state.steady import StateChanges, names_of, traced_steadily
from workers.definitions.module_state.twin import twin
from workers.definitions.module_state.untouched import untouched
from workers.definitions.module_state.writers import written_at
from workers.definitions.tracing.opened import opened
from workers.definitions.tracing.reasons import Untraceable, reason_of
from workers.definitions.tracing.record import record

CONSTANTS = ("_tensor_constant", "_opaque_obj")
"""How torch.fx begins the names of what it puts into the root module: tensors and generators."""
KEPT_WHOLE = (
    "{path} is kept whole, because its forward changes {names}. Where that is no buffer, a "
    "checkpoint does not hold it: let register_buffer keep it, and change it in place."
)
READ_BESIDE = "Let the submodule return what others read of it, in place of an attribute."
NOT_PASSED = "{path} is kept whole: {reason}."
StandIns = Literal["symbolic", "partly", "submodules"]
"""Through every submodule; through those that stand-ins pass; through none but Sequentials."""


@dataclass(frozen=True, slots=True)
class _StandInTrace:
    graph: fx.Graph
    constants: dict[str, Any]

    def equals(self, other: "_StandInTrace") -> bool:
        mine, theirs = self.constants, other.constants
        return (
            str(self.graph) == str(other.graph)
            and mine.keys() == theirs.keys()
            and all(equal_values(values(mine[name]), values(theirs[name])) for name in mine)
        )


class _Tracer(fx.Tracer):
    """Traces `forward(*inputs)`; further arguments keep their Python defaults. The modules at the
    paths `whole` are not looked into."""

    proxy_buffer_attributes = True

    def __init__(self, num_inputs: int, whole_submodules: bool, whole: Collection[str]) -> None:
        super().__init__()
        self.num_inputs, self.whole_submodules, self.whole = num_inputs, whole_submodules, whole
        self.stopped_in = ""

    def create_args_for_root(
        self, root_fn: Any, is_module: bool, concrete_args: Any = None
    ) -> tuple[Any, list[Any]]:
        # no name is Python's own: code that fx writes would call the second input as the first
        names = [f"input_{number}" for number in range(1, self.num_inputs + 1)]
        return root_fn, [self.root, *(self.create_proxy("placeholder", n, (), {}) for n in names)]

    def call_module(self, m: nn.Module, forward: Any, args: Any, kwargs: Any) -> Any:
        if self._is_function(m):
            return forward(*args, **kwargs)
        try:
            if (opening := opened(m)) and not self.is_leaf_module(m, self.path_of_module(m)):
                return opening(*args, **kwargs)
            return super().call_module(m, forward, args, kwargs)
        except Exception:
            self.stopped_in = self.stopped_in or self.path_of_module(m)  # the innermost
            raise

    def _is_function(self, m: nn.Module) -> bool:
        """Whether `m` is no part of the model and holds nothing, as an activation that a file keeps
        for all of its models does."""
        holds = any(True for _ in m.parameters()) or any(True for _ in m.buffers())
        return not holds and all(m is not each for each in self.root.modules())

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        if module_qualified_name in self.whole:
            return True
        if self.whole_submodules:
            return not isinstance(m, nn.Sequential)
        if opened(m):
            return False
        return super().is_leaf_module(m, module_qualified_name)


def symbolic(
    model: nn.Module, inputs: tuple[Tensor, ...], tracing: StandIns = "symbolic"
) -> tuple[nn.Module, fx.Graph, tuple[str, ...]]:
    """A copy of `model` (parameters are shared), its graph, and notes.

    Submodules whose forward changes what a trace does not see are called as a whole. Raises
    `ValueError` and whatever the user's code raises where the trace would not be sound.
    """
    keepers: dict[str, list[Difference]] = {}
    notes: list[str] = []
    model = twin(model)
    _take_constants(model)  # those of an earlier trace
    while True:
        whole = _Whole(tracing == "submodules", keepers.keys())
        try:
            owner, graph = _traced(model, inputs, whole)
            break
        except StateChanges as error:
            _add_keepers(keepers, error)
        except _Stopped as error:
            if tracing != "partly" or error.path in keepers:
                raise _cause(keepers, error.cause) from None
            keepers[error.path] = []
            reason = reason_of(error.cause)
            told = NOT_PASSED.format(path=error.path, reason=reason)
            is_new = reason.advice and not any(reason.advice in note for note in notes)
            notes.append(f"{told} {reason.advice}" if is_new else told)
        except Exception as error:
            raise _cause(keepers, error) from None
    kept = (_kept_whole(model, path, found) for path, found in keepers.items() if found)
    return owner, graph, (*notes, *kept)


def _kept_whole(model: nn.Module, path: str, found: list[Difference]) -> str:
    names, (place, _) = names_of([each.path for each in found]), written_at(model, found)
    return KEPT_WHOLE.format(path=path, names=f"{names} ({place})" if place else names)


def _cause(keepers: Mapping[str, list[Difference]], error: Exception) -> Exception:
    """Why the model's own forward cannot be traced: it may miss what a submodule that is kept
    whole would have left for it."""
    names = [each.path for found in keepers.values() for each in found]
    if not names or isinstance(error, Untraceable):
        return error
    told = f"it may read {names_of(names)}, which a submodule's forward changes"
    place = reason_of(error).place
    return Untraceable(f"{place}: {told}" if place else told, READ_BESIDE)


class _Stopped(Exception):
    """Stand-ins could not pass the submodule at `path`."""

    def __init__(self, path: str, cause: Exception) -> None:
        super().__init__(str(cause))
        self.path, self.cause = path, cause


@dataclass(frozen=True, slots=True)
class _Whole:
    """What is called as a whole: every submodule, or those at the paths."""

    submodules: bool
    paths: Collection[str]


def _traced(
    model: nn.Module, inputs: tuple[Tensor, ...], whole: _Whole
) -> tuple[nn.Module, fx.Graph]:
    owner = twin(model)
    learning, evaluating = traced_steadily(
        model,
        lambda copied: _trace(copied, _Tracer(len(inputs), whole.submodules, whole.paths)),
        _StandInTrace.equals,
    )
    if str(learning.graph) != str(evaluating.graph):
        raise Untraceable("its forward depends on self.training")
    if not learning.equals(evaluating):
        raise Untraceable("its forward makes other numbers every time that depend on no input")
    vars(owner).update(learning.constants)
    _check_constants(owner, learning.graph, inputs)
    return owner, learning.graph


def _check_constants(owner: nn.Module, graph: fx.Graph, inputs: tuple[Tensor, ...]) -> None:
    """Raise `StateChanges` where the graph changes a tensor that is neither a weight nor a buffer:
    the next forward, or that of another shape, would meet what this one left."""
    read = {str(node.target) for node in graph.nodes if node.op == "get_attr"}
    constants = read - {name for name, _ in _named_state(owner)}
    if not constants:
        return
    runner = fx.GraphModule(owner, graph)
    with untouched(owner), untouched(runner), mode_of(inputs):
        seen = record(runner.train(), tuple(tensor.clone() for tensor in inputs))
    changed = {str(node.target) for node, _ in seen.changes if node.op == "get_attr"} & constants
    if changed:
        found = [Difference(name, name.rpartition(".")[0], owner) for name in sorted(changed)]
        raise StateChanges(owner, found)


def _trace(model: nn.Module, tracer: _Tracer) -> _StandInTrace:
    """The constants are taken out of the model again, so that the next trace begins as this one."""
    try:
        return _StandInTrace(tracer.trace(model), _take_constants(model))
    except Exception as error:
        if tracer.stopped_in:
            raise _Stopped(tracer.stopped_in, error) from error
        raise


def _take_constants(model: nn.Module) -> dict[str, Any]:
    names = [name for name in vars(model) if name.startswith(CONSTANTS)]
    return {name: vars(model).pop(name) for name in names}


def _add_keepers(keepers: dict[str, list[Difference]], error: StateChanges) -> None:
    """Note the modules that keep what differs; raises the error again where that is no submodule,
    or one that was not looked into."""
    differences = error.differences
    owners = [each.module for each in differences]
    if not all(owners) or set(owners) <= keepers.keys():
        raise error
    for each in differences:
        if each.module:
            keepers.setdefault(each.module, []).append(each)


def _named_state(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from model.named_parameters(remove_duplicate=False)
    yield from model.named_buffers(remove_duplicate=False)
