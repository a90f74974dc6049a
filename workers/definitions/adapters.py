"""Low-rank adapters (LoRA) beside the linear layers of a frozen base: put in, and added to the
weights when a training is over. Hu et al. 2021; names as the library peft has them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from workers.definitions.errors import DefinitionFailed

DOWN, UP, SCALE = "lora_A", "lora_B", "lora_scale"


@dataclass(frozen=True, slots=True)
class Adapters:
    """`rank`: of the product that learns, times `scale` (alpha over the rank). `layers`: the last
    part of the names of the layers that have one; () = every linear layer but the model's head."""

    rank: int
    scale: float
    layers: tuple[str, ...] = ()


def adapt(model: nn.Module, adapters: Adapters) -> None:
    """Freeze `model` and put adapters beside its linear layers, which keep their names. The product
    is 0 at first. Raises `DefinitionFailed` where no layer has such a name."""
    model.requires_grad_(False)
    head = getattr(model, "get_output_embeddings", lambda: None)()
    linear = {
        name: layer
        for name, layer in model.named_modules()
        if layer is not head and _sizes(layer) is not None
    }
    wanted = adapters.layers
    chosen = {
        name: layer
        for name, layer in linear.items()
        if not wanted or name.rpartition(".")[2] in wanted
    }
    if not chosen:
        known = sorted({name.rpartition(".")[2] for name in linear})
        raise DefinitionFailed(
            f"no linear layer of the model is called {' or '.join(wanted) or 'anything'}",
            f"Give lora_layers among {', '.join(known) or 'none: it has no such layer'}.",
        )
    for layer in chosen.values():
        _put(layer, adapters)


def _sizes(layer: nn.Module) -> tuple[int, int] | None:
    """(inputs, outputs) of a linear layer, or of GPT-2's that has its weight the other way."""
    if isinstance(layer, nn.Linear):
        return layer.in_features, layer.out_features
    if type(layer).__name__ == "Conv1D":
        wide: Any = layer
        return int(wide.nx), int(wide.nf)
    return None


def _put(layer: Any, adapters: Adapters) -> None:
    sizes = _sizes(layer)
    assert sizes is not None, "chosen for being linear"
    inputs, outputs = sizes
    layer.add_module(DOWN, nn.Linear(inputs, adapters.rank, bias=False))
    layer.add_module(UP, nn.Linear(adapters.rank, outputs, bias=False))
    nn.init.zeros_(layer.lora_B.weight)
    setattr(layer, SCALE, adapters.scale)
    base = type(layer)

    def forward(self: Any, x: Tensor) -> Tensor:
        found: Tensor = base.forward(self, x) + self.lora_B(self.lora_A(x)) * self.lora_scale
        return found

    layer.__class__ = type(base.__name__, (base,), {"forward": forward, "__module__": __name__})


def adapter_names(model: nn.Module) -> set[str]:
    """The names of the weights of adapters."""
    return {
        f"{name}.{part}.weight"
        for name, layer in model.named_modules()
        if hasattr(layer, SCALE)
        for part in (DOWN, UP)
    }


def merged(model: nn.Module, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same with each adapter added to the weight of its layer, where all of it is there."""
    found = dict(tensors)
    for name, layer in model.named_modules():
        weight, down, up = f"{name}.weight", f"{name}.{DOWN}.weight", f"{name}.{UP}.weight"
        if not hasattr(layer, SCALE) or not {weight, down, up} <= found.keys():
            continue
        product = found.pop(up).float() @ found.pop(down).float() * getattr(layer, SCALE)
        whole = found[weight]
        product = product if isinstance(layer, nn.Linear) else product.T
        found[weight] = (whole.float() + product.to(whole.device)).to(whole.dtype)
    return found
