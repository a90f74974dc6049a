"""Weights from a safetensors file into a model."""

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor

from workers.definitions.errors import DefinitionFailed


def load_weights(model: nn.Module, file: Path) -> None:
    """Put the file's tensors into `model` by its own names; a tied weight may stand under any
    of its names. Only tensors that have values are read. Raises `DefinitionFailed` naming what
    is missing, unknown or of another size.
    """
    try:
        with safe_open(file, framework="pt") as opened:
            _read(model, file, opened)
    except (SafetensorError, OSError) as error:
        raise DefinitionFailed(f"{file.name} is not a safetensors file: {error}") from error


def _read(model: nn.Module, file: Path, opened: Any) -> None:
    wanted = model.state_dict(keep_vars=True)
    found = {name: tuple(opened.get_slice(name).get_shape()) for name in opened.keys()}  # noqa: SIM118
    given = {id(wanted[name]) for name in found if name in wanted}
    missing = [name for name, tensor in wanted.items() if id(tensor) not in given]
    unknown = [name for name in found if name not in wanted]
    odd = [n for n in found if n in wanted and found[n] != tuple(wanted[n].shape)]
    for what, names in (("lacks", missing), ("has unknown", unknown), ("has other sizes of", odd)):
        if names:
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            raise DefinitionFailed(
                f"{file.name} {what} {', '.join(names[:3])}{more}",
                "Give weights that were saved from this model.",
            )
    with torch.no_grad():
        for name in found:
            if not isinstance(wanted[name], FakeTensor):
                wanted[name].copy_(opened.get_tensor(name))
