"""Whether all that a forward changes is kept on one side of every cut."""

from collections import Counter

from torch import Tensor, fx, nn

from workers.definitions.module_state.module_state import ModuleState, objects_in
from workers.definitions.module_state.untouched import untouched


def check_keepers(model: nn.Module, graph: fx.Graph, inputs: tuple[Tensor, ...]) -> None:
    """Raise `ValueError` where a forward changes something that no module, or more than one, of
    those that `graph` calls as a whole keeps: each stage would have one of its own.

    Buffers and generators that the graph reads itself are on one side of every cut anyway. What is
    changed outside of modules that are called as a whole was judged when it was traced.
    """
    with untouched(model):
        before = ModuleState.of(model.train())
        model(*(tensor.clone() for tensor in inputs))
        changed = before.differences(ModuleState.of(model))
    called = Counter(str(node.target) for node in graph.nodes if node.op == "call_module")
    reached = {path: objects_in(model.get_submodule(path)) for path in called}
    for each in changed:
        is_global = each.module is None
        if each.is_buffer or (each.is_random and is_global):
            continue
        keepers = [path for path in called if id(each.holder) in reached[path]]
        if (
            len(keepers) > 1
            or (is_global and not keepers)
            or any(
                called[path] > 1 and not [*model.get_submodule(path).parameters()]
                for path in keepers
            )
        ):
            raise ValueError(f"its forward changes {each.path}, which a cut could split")
