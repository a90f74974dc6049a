"""Whether a model's layers compute what the model computes, where no process holds the model.

The model runs with first values that each of its modules has only while it runs; the layers run
one by one with the same. Both see the same inputs and random numbers, in training and evaluation.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor

from workers.definitions.blueprint.blueprint import Blueprint
from workers.definitions.cut import cut
from workers.definitions.layers import LayeredModel
from workers.definitions.module_state.module_state import ModuleState
from workers.definitions.module_state.steady import StateChanges, unseen
from workers.definitions.module_state.untouched import untouched
from workers.definitions.samples import Samples, tensors, tensors_of
from workers.definitions.tracing.trace import alike

UNCHECKED = (
    "Whether the layers compute what the model computes was not checked: a module of it reads "
    "weights of another one."
)
Progressed = Callable[[int, int], None]


def check_by_parts(layered: LayeredModel, inputs: Samples, progress: Progressed) -> tuple[str, ...]:
    """A note where it cannot be told. `progress` is told how many layers are done, of how many.

    Raises `ValueError` where the layers give something else than the model; gradients are not
    compared.
    """
    made = layered.blueprint
    assert made is not None, "the model has values already"
    with torch.no_grad(), torch.random.fork_rng():
        wanted = [
            _of_model(made, tensors(inputs), mode, layered.tracing == "captured")
            for mode in (True, False)
        ]
        if any(isinstance(tensor, FakeTensor) for result in wanted for tensor in result):
            return (UNCHECKED,)
        found = _of_layers(layered, made, tensors(inputs), progress)
    for one, other in zip(wanted, found, strict=True):
        if len(one) != len(other) or not all(map(alike, one, other)):
            raise ValueError("its forward does something that tracing does not see")
    return ()


def _of_model(
    made: Blueprint, inputs: tuple[Tensor, ...], mode: bool, captured: bool
) -> list[Tensor]:
    """Raises `StateChanges` where the model was captured on shapes, which shows no such change."""
    torch.manual_seed(0)
    model = made.model.train(mode)
    with untouched(model):
        before = ModuleState.of(model)
        with _filled_while_called(made):
            result = tensors_of(model(*(tensor.clone() for tensor in inputs)))
        changed = unseen(before, model, sees_buffers=True) if captured else ()
    own = [each for each in changed if not _is_of_torch(model, each.module)]
    if own:
        raise StateChanges(model, own)
    return result


def _is_of_torch(model: nn.Module, path: str | None) -> bool:
    """Whether a module of torch keeps it: such notes change when weights are filled in."""
    kind = type(model.get_submodule(path)) if path is not None else object
    return kind.__module__.partition(".")[0] == "torch"


@contextmanager
def _filled_while_called(made: Blueprint) -> Iterator[None]:
    """Inside, a module's own tensors have values while its forward runs."""
    open_: dict[int, ExitStack] = {}

    def before(module: nn.Module, _: object) -> None:
        stack = open_.setdefault(id(module), ExitStack())
        stack.enter_context(made.filled(module, deep=False))

    def after(module: nn.Module, *_: object) -> None:
        open_.pop(id(module)).close()

    with ExitStack() as hooks:
        for module in made.model.modules():
            hooks.callback(module.register_forward_pre_hook(before).remove)
            hooks.callback(module.register_forward_hook(after, always_call=True).remove)
        yield


def _of_layers(
    layered: LayeredModel, made: Blueprint, inputs: tuple[Tensor, ...], progress: Progressed
) -> list[list[Tensor]]:
    """The outputs in training and in evaluation; each layer gets its values once."""
    torch.manual_seed(0)
    bundles = dict.fromkeys((True, False), inputs)
    drawn = {mode: torch.get_rng_state() for mode in bundles}
    count = len(layered.layers)
    for number in range(count):
        module = cut(layered, number, number + 1)
        with made.filled(module):
            for mode, bundle in bundles.items():
                with untouched(module):  # running statistics of the one are not the other's
                    torch.set_rng_state(drawn[mode])
                    result = module.train(mode)(*(tensor.clone() for tensor in bundle))
                    drawn[mode] = torch.get_rng_state()
                bundles[mode] = tuple(tensors_of(result))
        progress(number + 1, count)
    return [[*bundle] for bundle in bundles.values()]
