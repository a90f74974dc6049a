"""The model as layers, for full microbatches and for those of every other form."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import fx

from backend.runs.job import Job
from backend.runs.request.spec import TrainSpec
from workers.data.cutting import Cutting
from workers.data.labels import check_labels
from workers.data.split import DataSet
from workers.definitions.definition import LoadedDefinition
from workers.definitions.layers import LayeredModel
from workers.definitions.prepare import prepare
from workers.definitions.record import record
from workers.definitions.reorder import in_order
from workers.definitions.samples import Samples, mapped, tensors
from workers.definitions.trace import untouched
from workers.runtime.compute.stage import Precision, autocast
from workers.runtime.compute.variants import varied
from workers.runtime.samples.epoch import Form

NOTE = (
    "The plan is of a float32 profile: its layers are cut, and its predicted times are float32's."
)


@dataclass(frozen=True, slots=True)
class Layers:
    """In the plan's order: `base` for full microbatches (of the longest bucket), `others` for
    every other form that an epoch or an evaluation may have."""

    base: LayeredModel
    others: dict[Form, LayeredModel] = field(default_factory=dict)


def layers_of(
    job: Job,
    spec: TrainSpec,
    definition: LoadedDefinition,
    data: DataSet,
    cutting: Cutting,
    device: torch.device,
) -> Layers:
    """Trace the model for every form. A plan whose profile was taken in float32 cuts the layers
    that the model has in float32, also where its compute is cast: some models have others then.
    Raises what `prepare` raises, `DataFailed` and `InvalidInput`."""
    usual = max(spec.data.buckets) if data.train.lengths is not None else None
    form: Form = (spec.plan.microbatch, usual)
    batch = data.first(*form)
    inputs = mapped(batch[0], lambda tensor: tensor.to(device))
    granularity = spec.granularity or definition.granularity
    weights = Path(job.weights) if job.weights else None
    with autocast(device, _traced_in(spec)):
        base = prepare(definition, batch, spec.seed, device, granularity, weights)
        others = {
            other: varied(base, other, _inputs(data, other, device), granularity)
            for other in sorted(_forms(data, cutting) - {form}, key=str)
        }
    with autocast(device, spec.precision):  # bundles have the cast dtypes
        check_labels(data, definition, base.model, inputs)
        if _traced_in(spec) != spec.precision:
            base = replace(_cast(base, inputs), notes=(*base.notes, NOTE))
            others = {f: _cast(other, _inputs(data, f, device)) for f, other in others.items()}
    order = spec.plan.partition.order
    return Layers(
        in_order(base, order), {form: in_order(other, order) for form, other in others.items()}
    )


def _traced_in(spec: TrainSpec) -> Precision:
    return "float32" if spec.planned_in == "float32" else spec.precision


def _forms(data: DataSet, cutting: Cutting) -> set[Form]:
    held_out = () if data.held_out is None else cutting.padded(data.held_out)
    return cutting.forms(data.train) | {(len(group), length) for (group, length), _ in held_out}


def _inputs(data: DataSet, form: Form, device: torch.device) -> Samples:
    return mapped(data.first(*form)[0], lambda tensor: tensor.to(device))


def _cast(layered: LayeredModel, inputs: Samples) -> LayeredModel:
    """The same layers, with the bundles that the autocast around this call gives."""
    if layered.graph is None:
        return layered
    runner = fx.GraphModule(layered.model, layered.graph)
    with untouched(runner):
        seen = record(runner.train(), tuple(tensor.clone() for tensor in tensors(inputs)))
    specs = tuple(tuple(seen.specs[node] for node in bundle) for bundle in layered.bundles)
    return replace(layered, specs=specs)
