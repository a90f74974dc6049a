"""The model as layers, for full microbatches and for those of every other form."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import fx

from backend.profiles.state_precision import HALF, STATE_PRECISIONS, StatePrecisionKind
from backend.runs.job import Job
from backend.runs.request.spec import TrainSpec
from workers.data.cutting import Cutting
from workers.data.labels import check_labels
from workers.data.split import DataSet
from workers.data.unlike import told_beside_example
from workers.definitions.definition import LoadedDefinition
from workers.definitions.layering import recorded
from workers.definitions.layers import LayeredModel
from workers.definitions.prepare import outlined, prepare
from workers.definitions.reorder import in_order
from workers.definitions.samples import Samples, mapped, tensors
from workers.definitions.weights import FirstWeights
from workers.runtime.compute.kept_weights import as_kept
from workers.runtime.compute.stage import Precision, autocast
from workers.runtime.compute.variants import varied
from workers.runtime.samples.epoch import Form

NOTE = (
    "The plan is of a float32 profile: its layers are cut, and its predicted times are float32's."
)


@dataclass(frozen=True, slots=True)
class Layers:
    """In the plan's order: `base` for full microbatches (of the longest bucket), `others` for
    every other form that an epoch or an evaluation may have. `weights`: the files that first
    values are still to be read from."""

    base: LayeredModel
    others: dict[Form, LayeredModel] = field(default_factory=dict)
    weights: FirstWeights | None = None


def layers_of(
    job: Job,
    spec: TrainSpec,
    definition: LoadedDefinition,
    data: DataSet,
    cutting: Cutting,
    device: torch.device,
) -> Layers:
    """Trace the model for every form: on shapes alone where the plan's profile says how.

    A plan whose profile was taken in float32 cuts the layers that the model has in float32, also
    where its compute is cast: some models have others then.
    Raises what `prepare` raises, `DataFailed` and `InvalidInput`.
    """
    usual = max(spec.data.buckets) if data.train.lengths is not None else None
    form: Form = (spec.plan.microbatch, usual)
    granularity = spec.granularity or definition.granularity
    weights = FirstWeights(Path(job.weights), spec.weights_partial) if job.weights else None
    inputs, targets = data.first(*form)
    with told_beside_example(definition, inputs), autocast(device, _traced_in(spec)):
        if spec.tracing:
            base = outlined(definition, inputs, spec.tracing, spec.seed, device, granularity)
            notes = weights.check(base.model) if weights else ()
            base = replace(base, notes=(*base.notes, *notes))
        else:
            base = prepare(definition, (inputs, targets), spec.seed, device, granularity, weights)
        others = {
            other: varied(base, other, _inputs(base, data, other, device), granularity)
            for other in sorted(_forms(data, cutting) - {form}, key=str)
        }
    check_labels(data, definition, base.num_scores)
    kind, is_cast = STATE_PRECISIONS[spec.state_precision], _traced_in(spec) != spec.precision
    with autocast(device, spec.precision):  # bundles have the cast dtypes
        if is_cast or kind.weight == HALF:
            cast = _cast(base, _inputs(base, data, form, device), kind)
            others = {f: _cast(o, _inputs(base, data, f, device), kind) for f, o in others.items()}
            base = replace(cast, notes=(*base.notes, *((NOTE,) if is_cast else ())))
    order = spec.plan.partition.order
    return Layers(
        in_order(base, order),
        {form: in_order(other, order) for form, other in others.items()},
        weights if spec.tracing else None,
    )


def _traced_in(spec: TrainSpec) -> Precision:
    return "float32" if spec.planned_in == "float32" else spec.precision


def _forms(data: DataSet, cutting: Cutting) -> set[Form]:
    held_out = () if data.held_out is None else cutting.padded(data.held_out)
    return cutting.forms(data.train) | {(len(group), length) for (group, length), _ in held_out}


def _inputs(base: LayeredModel, data: DataSet, form: Form, device: torch.device) -> Samples:
    """Samples of this form on the device: shapes where the model consists of shapes."""
    samples = data.first(*form)[0]
    if base.blueprint is not None:
        return base.blueprint.inputs(samples)
    return mapped(samples, lambda tensor: tensor.to(device))


def _cast(layered: LayeredModel, inputs: Samples, kind: StatePrecisionKind) -> LayeredModel:
    """The same layers, with the bundles that the autocast around this call gives of weights as
    `kind` keeps them."""
    if layered.graph is None:
        return layered
    runner = fx.GraphModule(layered.model, layered.graph)
    with as_kept(runner, kind):
        seen = recorded(runner, tensors(inputs))
    specs = tuple(tuple(seen.specs[node] for node in bundle) for bundle in layered.bundles)
    return replace(layered, specs=specs)
