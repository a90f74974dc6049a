"""A model as shapes, and the first values of whichever of its tensors are wanted."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves

from workers.definitions.blueprint.recording import LARGE, Recording, Shapes, copies_are_recorded
from workers.definitions.blueprint.seeded import built
from workers.definitions.blueprint.steps import Steps
from workers.definitions.errors import DefinitionFailed
from workers.definitions.samples import Samples, mapped

Holder = dict[Any, Any] | list[Any]
Held = tuple[Any, Any, Tensor]
"""What holds a tensor (a dictionary or list of a module), under which key, and the tensor."""


class NotByShapes(DefinitionFailed):
    """A model whose first values cannot be made one by one; says why."""

    advice = "Profile the definition again and make a new plan: each rank then makes all of it."


@dataclass(frozen=True, slots=True)
class Blueprint:
    """`model` has the factory's structure with parameters and buffers that are shapes on the
    device; `_origins`: by the id of such a tensor, what the factory made (shape or value)."""

    model: nn.Module
    shapes: Shapes
    device: torch.device
    _steps: Steps
    _origins: dict[int, Tensor]

    def inputs(self, samples: Samples) -> Samples:
        """Samples of the same shapes, without values."""
        return mapped(samples, lambda tensor: _like(tensor, self.shapes, self.device))

    def values(self, wanted: Iterable[Tensor]) -> dict[int, Tensor]:
        """The first values of those tensors of the model, on its device, by the shapes' ids."""
        origins = {id(tensor): self._origins[id(tensor)] for tensor in wanted}
        large = {key: origin for key, origin in origins.items() if isinstance(origin, FakeTensor)}
        made = dict(zip(large, self._steps.values([*large.values()]), strict=True))
        return {
            key: _as(origin, made.get(key, origin), self.device) for key, origin in origins.items()
        }

    def check(self, module: nn.Module) -> None:
        """Raise `NotByShapes` where the module keeps a shape that is none of the model's."""
        for tensor in shapes_in(module):
            if id(tensor) not in self._origins:
                raise NotByShapes(f"it keeps a tensor of shape {tuple(tensor.shape)} out of sight")

    def fill(self, *modules: nn.Module, wanted: Iterable[Tensor]) -> None:
        """Put the first values of the wanted tensors in the place of their shapes, everywhere in
        the modules."""
        values = self.values(wanted)
        for holder, key, tensor in (named for module in modules for named in tensors_in(module)):
            if id(tensor) in values:
                holder[key] = values[id(tensor)]

    @contextmanager
    def filled(self, module: nn.Module, deep: bool = True) -> Iterator[None]:
        """Inside, the module's tensors have their first values, those of the modules inside of it
        too if `deep`; after, they are shapes again."""
        held = [*tensors_in(module, deep)]
        shapes = {id(tensor): tensor for _, _, tensor in held if isinstance(tensor, FakeTensor)}
        with torch.random.fork_rng():
            values = self.values(shapes.values())
        for holder, key, tensor in held:
            holder[key] = values.get(id(tensor), tensor)
        try:
            yield
        finally:
            for holder, key, tensor in held:
                holder[key] = tensor


def blueprint(
    make: Callable[[], nn.Module], seed: int, device: torch.device | None = None, large: int = LARGE
) -> Blueprint:
    """The blueprint of the model that `make` builds, with the first values that `seed` gives.

    The factory runs on shapes where tensors have `large` elements or more. Raises what it
    raises, and `NotByShapes` where a module keeps a shape where no name leads to it.
    """
    chosen = device or torch.device("cpu")
    recording = Recording(seed, large)
    with copies_are_recorded():
        model = built(make, recording, seed)
    origins = _on(model, recording.shapes, chosen)
    return Blueprint(model, recording.shapes, chosen, recording.steps, origins)


def tensors_in(module: nn.Module, deep: bool = True) -> Iterator[Held]:
    """Every tensor that a module keeps, its weights and buffers first: by a name, or in a list or
    dictionary of its own; those of the modules inside of it too if `deep`."""
    for part in module.modules() if deep else (module,):
        for holder in (part._parameters, part._buffers, vars(part)):
            yield from _held(holder)
        for key, value in vars(part).items():
            if isinstance(value, list | dict) and key not in ("_parameters", "_buffers"):
                yield from _held(value)


def _held(holder: Holder) -> Iterator[Held]:
    items = holder.items() if isinstance(holder, dict) else enumerate(holder)
    for key, value in [*items]:
        if isinstance(value, Tensor):
            yield holder, key, value


def shapes_in(module: nn.Module) -> list[Tensor]:
    """Its tensors that have no values, each once."""
    found = {id(tensor): tensor for _, _, tensor in tensors_in(module)}
    return [tensor for tensor in found.values() if isinstance(tensor, FakeTensor)]


def mode_of(inputs: Iterable[Tensor]) -> AbstractContextManager[object]:
    """What must be entered to run operations on these tensors: their mode where they are shapes."""
    modes = [tensor.fake_mode for tensor in inputs if isinstance(tensor, FakeTensor)]
    return modes[0] if modes else nullcontext()


def _on(model: nn.Module, shapes: Shapes, device: torch.device) -> dict[int, Tensor]:
    """Put shapes on the device in the place of all weights and buffers, and of other tensors that
    have no values; what the factory made, by the new shape's id."""
    origins: dict[int, Tensor] = {}
    put: dict[int, Tensor] = {}
    state = {id(tensor) for tensor in (*model.parameters(), *model.buffers())}
    for holder, key, tensor in tensors_in(model):
        if not (isinstance(tensor, FakeTensor) or id(tensor) in state):
            continue
        if id(tensor) not in put:
            new = put[id(tensor)] = _as(tensor, _like(tensor, shapes, device), device)
            origins[id(new)] = tensor
        holder[key] = put[id(tensor)]
    shapes.forget()
    _check_names(model)
    return origins


def _check_names(model: nn.Module) -> None:
    """Raise `NotByShapes` where a module keeps a shape deeper inside of an attribute."""
    seen = {id(tensor) for _, _, tensor in tensors_in(model)}
    for path, part in model.named_modules():
        for key, value in vars(part).items():
            deep = (leaf for leaf in tree_leaves(value) if isinstance(leaf, FakeTensor))
            if any(id(leaf) not in seen for leaf in deep):
                raise NotByShapes(
                    f"{'.'.join(filter(None, (path, key)))} holds tensors in a "
                    f"{type(value).__name__}; let register_buffer keep each of them"
                )


def _like(tensor: Tensor, shapes: Shapes, device: torch.device) -> Tensor:
    with shapes:
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device)


def _as(origin: Tensor, value: Tensor, device: torch.device) -> Tensor:
    """The value on the device, a parameter where the origin is one."""
    placed = value.detach().to(device)
    if isinstance(origin, nn.Parameter):
        return nn.Parameter(placed, requires_grad=origin.requires_grad)
    return placed
