"""Whether ranks can find a profile's layers again without the model's weights."""

from dataclasses import replace

import torch

from backend.profiles.profile import Tracing
from workers.definitions.definition import LoadedDefinition
from workers.definitions.layers import LayeredModel
from workers.definitions.prepare import outlined
from workers.definitions.samples import Samples
from workers.definitions.tracing.reasons import reason_of

WHOLE = "In a training every rank makes the whole model before it keeps its stages: {}."


def traced_again(
    definition: LoadedDefinition, inputs: Samples, layered: LayeredModel, device: torch.device
) -> tuple[Tracing, tuple[str, ...]]:
    """How the layers are found again on shapes alone; "" where that fails or gives others, with a
    note that says why."""
    if not layered.tracing:
        return "", ()
    try:
        again = outlined(definition, inputs, layered.tracing, 0, device, layered.granularity)
    except Exception as error:  # the factory is the user's, and shapes have no values
        reason = reason_of(error)
        return "", (f"{WHOLE.format(reason)} {reason.advice}".rstrip(),)
    if _facts(again) != _facts(layered):
        return "", (WHOLE.format("its layers depend on values, not on shapes alone"),)
    return layered.tracing, ()


def _facts(layered: LayeredModel) -> tuple[object, ...]:
    """All that plans and messages depend on."""
    layers = [replace(layer, nodes=()) for layer in layered.layers]
    return layers, layered.edges, layered.crossings, layered.tied_weights, layered.specs
