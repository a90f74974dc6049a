"""From a definition to its layers: builds the model, runs it once, then traces it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from backend.profiles.profile import Tracing
from workers.definitions.blueprint.blueprint import blueprint
from workers.definitions.blueprint.recording import LARGE
from workers.definitions.cutter import num_bytes
from workers.definitions.definition import LoadedDefinition, answers
from workers.definitions.errors import ModelRaised, describe, user_traceback
from workers.definitions.layering import layered
from workers.definitions.layers import LayeredModel
from workers.definitions.module_state.module_state import ModuleState
from workers.definitions.module_state.steady import names_of
from workers.definitions.module_state.untouched import untouched
from workers.definitions.samples import Batch, Samples, mapped, positional, tensors
from workers.definitions.units import Granularity
from workers.definitions.weights import FirstWeights

SPARSE = (
    "{path} asks for sparse gradients; here they are dense, as large as its table, so that stages "
    "can sum and send them."
)
STACKED = (
    "{path} is one layer with {share:.0%} of the weights: torch computes the {count} layers of an "
    "nn.{kind} in one. Write {count} modules of one layer each, to cut between them."
)
KEPT = (
    "A forward changes {names}, which no buffer keeps: a run that goes on from a checkpoint begins "
    "with what the factory makes."
)


def prepare(
    definition: LoadedDefinition,
    batch: Batch,
    seed: int = 0,
    device: torch.device | None = None,
    granularity: Granularity | None = None,
    weights: FirstWeights | None = None,
) -> LayeredModel:
    """The layers of the definition's model on `device`, for inputs of the batch's shape, with
    the seed's weights or those of files.

    Raises `DefinitionFailed` where the model cannot be built and `ModelRaised` where the model
    or its loss raises on the batch, or where the loss is no single number; on meta tensors
    nothing is run.
    """
    inputs, targets = (mapped(samples, lambda t: t.to(device)) for samples in batch)
    model = positional(definition.model(seed), inputs)
    notes = weights.load(model) if weights else ()
    model.to(device)
    changed: tuple[str, ...] = ()
    if not any(tensor.is_meta for tensor in tensors(inputs)):
        changed = _try(definition, model, inputs, targets)
    found = layered(model, inputs, granularity or definition.granularity)
    notes += tuple(SPARSE.format(path=path) for path in _sparse(model))
    notes += tuple(_stacked(model))
    if changed and found.tracing in (
        "",
        "partly",
        "submodules",
    ):  # else the trace names what it keeps whole
        notes += (KEPT.format(names=names_of(changed)),)
    return replace(found, notes=(*found.notes, *notes))


def outlined(
    definition: LoadedDefinition,
    inputs: Samples,
    tracing: Tracing,
    seed: int = 0,
    device: torch.device | None = None,
    granularity: Granularity | None = None,
    large: int = LARGE,
) -> LayeredModel:
    """As `prepare`, on shapes alone: nothing of the model's size is allocated and nothing is run.
    `tracing` says how, as a profile has it; `blueprint` makes the first values. Tensors of fewer
    than `large` elements are made at once.

    Raises what the factory raises on shapes, and `NotByShapes`.
    """
    made = blueprint(lambda: positional(definition.build(), inputs), seed, device, large)
    shapes = made.inputs(inputs)
    found = layered(made.model, shapes, granularity or definition.granularity, tracing)
    made.check(found.model)
    return replace(found, blueprint=made)


def _sparse(model: nn.Module) -> list[str]:
    """The paths of the embeddings that are asked for sparse gradients."""
    kinds = nn.Embedding, nn.EmbeddingBag
    return [p for p, each in model.named_modules() if isinstance(each, kinds) and each.sparse]


def _stacked(model: nn.Module) -> Iterator[str]:
    """A sentence on each recurrent module of several layers that holds most of the weights."""
    total = num_bytes(model.parameters()) + num_bytes(model.parameters(), trained=False)
    for path, each in model.named_modules():
        if path and isinstance(each, nn.RNNBase) and each.num_layers > 1:
            own = num_bytes(each.parameters()) + num_bytes(each.parameters(), trained=False)
            if 2 * own > total:
                yield STACKED.format(
                    path=path, share=own / total, count=each.num_layers, kind=type(each).__name__
                )


def _try(
    definition: LoadedDefinition, model: nn.Module, inputs: Samples, targets: Any
) -> tuple[str, ...]:
    """Run the model and its loss once; the paths of what a forward changes beside buffers."""
    doing = "the model raised"
    try:
        with untouched(model), torch.no_grad():
            before = ModuleState.of(model.train())
            output = model(*(tensor.clone() for tensor in tensors(inputs)))
            changed = before.differences(ModuleState.of(model))
            doing = "the loss raised"
            loss = definition.loss(output, answers(definition.loss, inputs, targets))
    except Exception as error:
        shapes = ", ".join(str(tuple(tensor.shape)) for tensor in tensors(inputs))
        message = f"{describe(error, definition.file)} ({doing} it on inputs of shape {shapes})"
        detail = user_traceback(error, definition.file)
        raise ModelRaised(message, detail=detail) from error
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
        shape_text = tuple(loss.shape) if isinstance(loss, torch.Tensor) else type(loss).__name__
        raise ModelRaised(
            f"{definition.file.name}: the loss is {shape_text}, not a single number",
            "Let loss(output, target) return a mean over the batch.",
        )
    kept = (each for each in changed if each.module is not None or not each.is_random)
    return tuple(each.path for each in kept if not each.is_buffer)
