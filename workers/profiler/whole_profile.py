"""A profile whose layers were timed in a chain, as in training, beside the whole model."""

from dataclasses import replace

import torch

from backend.profiles.profile import Profile
from backend.runs.events import Progress
from backend.runs.request.spec import ProfileSpec
from workers.definitions.definition import LoadedDefinition, Loss
from workers.definitions.layers import LayeredModel
from workers.definitions.module_state.untouched import untouched
from workers.definitions.prepare import prepare
from workers.definitions.samples import Batch, tensors
from workers.profiler.described import graph_of
from workers.profiler.layer_costs import layer_costs
from workers.profiler.local_head_costs import local_head_costs
from workers.profiler.measure import WARM_UP, ModelTimes, benches, measure
from workers.profiler.retrace import traced_again
from workers.profiler.sizes import (
    LayerSizes,
    deferred_bytes,
    flops,
    saved_bytes,
    step_peak,
    work_bytes,
)
from workers.runtime.compute.stage import Precision, autocast
from workers.runtime.reports.reporter import Reporter


class Stopped(BaseException):
    """The job is to end; what is measured so far is kept as a partial profile."""


def whole_profile(
    definition: LoadedDefinition,
    batch: Batch,
    spec: ProfileSpec,
    device: torch.device,
    reporter: Reporter,
) -> Profile:
    """What was measured, at the batch's samples; partial where a `Stopped` came.

    Raises `Stopped` before the first counted repetition.
    """
    with autocast(device, spec.precision):  # bundles have the cast dtypes
        granularity = spec.granularity or None
        layered = prepare(definition, batch, device=device, granularity=granularity)
        tracing, notes = traced_again(definition, batch[0], layered, device)
    reporter.started()
    measured, counted = _measured(layered, batch, definition.loss, spec, reporter)
    is_partial = counted < spec.repetitions
    sizes = None if is_partial else _sizes(layered, batch, definition.loss, spec.precision)
    peak = sizes.peak if sizes else None
    forward, backward, update = measured.seconds(measured.whole)
    layers = layer_costs(layered, measured, sizes)
    if sizes:
        how = definition.loss, spec.repetitions, spec.precision
        heads = local_head_costs(layered, batch, *how, sum(sizes.flops))
        layers = tuple(
            replace(layer, local_heads=own) for layer, own in zip(layers, heads, strict=True)
        )
    return Profile(
        name="",
        graph=graph_of(layered, layers),
        microbatch=spec.microbatch,
        whole_forward=forward,
        whole_backward=backward,
        whole_update=update,
        repetitions=counted,
        notes=layered.notes + notes,
        peak_bytes=peak.alive if peak else None,
        process_bytes=peak.unused if peak else 0,
        tracing=tracing,
        is_partial=is_partial,
    )


def _measured(
    layered: LayeredModel, batch: Batch, loss: Loss, spec: ProfileSpec, reporter: Reporter
) -> tuple[ModelTimes, int]:
    """The times, and of how many repetitions: of fewer than asked for if the job is stopped."""
    measured, done = None, 0
    repetitions = measure(layered, batch, loss, spec.repetitions, spec.precision)
    try:
        for done, so_far in enumerate(repetitions, start=1):
            measured = so_far
            reporter(_progress(done, spec.repetitions))
    except Stopped:
        if done <= WARM_UP:
            raise
        reporter.log(f"Stopped after {done - WARM_UP} of {spec.repetitions} repetitions.")
    assert measured is not None, "there is one repetition at least"
    return measured, done - WARM_UP


def _sizes(layered: LayeredModel, batch: Batch, loss: Loss, precision: Precision) -> LayerSizes:
    inputs, targets = tensors(batch[0]), batch[1]
    with untouched(layered.model):
        layers, whole = benches(layered, loss, precision)
        saved = saved_bytes(layers, inputs, targets)
        return LayerSizes(
            saved,
            flops(layers, inputs, targets),
            work_bytes(layers, inputs, targets),
            step_peak(whole, inputs, targets),
            deferred_bytes(layers, inputs, targets),
        )


def _progress(done: int, repetitions: int) -> Progress:
    if done <= WARM_UP:
        return Progress("warm up", done, WARM_UP)
    return Progress("layers", done - WARM_UP, repetitions)
