"""From a definition to its layers: builds the model, runs it once, then traces it."""

import torch
from torch import nn

from workers.definitions.errors import ModelRaised, describe, user_traceback
from workers.definitions.layers import LayeredModel, layered
from workers.definitions.loader import Batch, Definition
from workers.definitions.trace import untouched


def prepare(
    definition: Definition, batch: Batch, seed: int = 0, device: torch.device | None = None
) -> LayeredModel:
    """The layers of the definition's model on `device`, for inputs of the batch's shape.

    Raises `DefinitionFailed` where the model cannot be built and `ModelRaised` where the model
    or its loss raises on the batch, or where the loss is no single number.
    """
    model = definition.model(seed)
    model.to(device)
    inputs, targets = (tensor.to(device) for tensor in batch)
    _try(definition, model, inputs, targets)
    return layered(model, inputs)


def _try(
    definition: Definition, model: nn.Module, inputs: torch.Tensor, targets: torch.Tensor
) -> None:
    doing = "the model raised"
    try:
        with untouched(model), torch.no_grad():
            output = model.train()(inputs.clone())
            doing = "the loss raised"
            loss = definition.loss(output, targets)
    except Exception as error:
        shape = tuple(inputs.shape)
        message = f"{describe(error, definition.file)} ({doing} it on inputs of shape {shape})"
        detail = user_traceback(error, definition.file)
        raise ModelRaised(message, detail=detail) from error
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
        shape_text = tuple(loss.shape) if isinstance(loss, torch.Tensor) else type(loss).__name__
        raise ModelRaised(
            f"{definition.file.name}: the loss is {shape_text}, not a single number",
            "Let loss(output, target) return a mean over the batch.",
        )
