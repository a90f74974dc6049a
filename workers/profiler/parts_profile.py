"""A profile whose layers were made and timed one by one: for models that no process holds."""

from dataclasses import replace
from functools import partial

import torch

from backend.errors import InvalidInput, first_line
from backend.profiles.profile import Profile
from backend.runs.events import Progress
from backend.runs.request.spec import ProfileSpec
from backend.units import bytes_text
from workers.definitions.check_by_parts import check_by_parts
from workers.definitions.definition import LoadedDefinition
from workers.definitions.module_state.untouched import untouched
from workers.definitions.prepare import outlined, prepare
from workers.definitions.samples import Batch, tensors
from workers.profiler.by_parts import PartTimes, measured_by_parts
from workers.profiler.described import Sketch, graph_of, sketched
from workers.profiler.layer_costs import layer_costs
from workers.profiler.measure import bench_of, repeated
from workers.profiler.room import needed
from workers.profiler.sizes import StepPeak, step_peak
from workers.runtime.compute.stage import autocast
from workers.runtime.process import free
from workers.runtime.reports.reporter import Reporter

NOTE = (
    "Layers were made and timed one by one: {measured} of {layers}; the others cost what equal "
    "ones cost, which were at most {apart:.0%} from their median."
)
NOT_WHOLE = "The whole model was not run beside them: {sizes}."


def sketch_for_parts(
    definition: LoadedDefinition, spec: ProfileSpec, device: torch.device
) -> Sketch | None:
    """The model's sizes where it is to be profiled by parts: it does not fit as a whole, or the
    spec says so. None where it is to be run as a whole, and where shapes do not suffice.

    Raises `InvalidInput` where the spec says so and shapes do not suffice.
    """
    try:
        found = sketched(definition, spec)
    except Exception as error:  # the factory is the user's, and shapes have no values
        if spec.by_parts:
            raise _impossible("", error) from error
        return None
    return found if spec.by_parts or needed(found) > free(device) else None


def parts_profile(
    definition: LoadedDefinition,
    batch: Batch,
    sketch: Sketch,
    spec: ProfileSpec,
    device: torch.device,
    reporter: Reporter,
) -> Profile:
    """The layers' costs by parts, at the batch's samples; the whole model's beside them where it
    fits.

    Raises `InvalidInput` with the sizes where the model cannot be made by parts.
    """
    sizes, fits = _sizes(sketch, device), needed(sketch) <= free(device)
    tracing, granularity = sketch.layered.tracing, spec.granularity or None
    with autocast(device, spec.precision):  # bundles have the cast dtypes
        try:
            layered = outlined(
                definition, batch[0], tracing, device=device, granularity=granularity
            )
            checking = partial(_report, reporter, "check")
            unchecked = () if fits else check_by_parts(layered, batch[0], checking)
        except Exception as error:  # as above
            raise _impossible(sizes, error) from error
    reporter.started()
    measuring = partial(_report, reporter, "layers")
    parts = measured_by_parts(layered, batch, definition.loss, spec, measuring)
    apart = max((spread for spread in parts.spreads if spread is not None), default=0.0)
    told = NOTE.format(measured=parts.measured, layers=len(layered.layers), apart=apart)
    not_whole = () if fits else (NOT_WHOLE.format(sizes=sizes),)
    peak = _whole(definition, batch, spec, device, parts) if fits else None
    forward, backward, update = parts.times.seconds(parts.times.whole)
    measured = replace(sketch.sizes, work=list(parts.work), deferred=list(parts.deferred))
    layers = layer_costs(layered, parts.times, measured, parts.spreads)
    return Profile(
        name="",
        graph=graph_of(layered, layers),
        microbatch=spec.microbatch,
        whole_forward=forward,
        whole_backward=backward,
        whole_update=update,
        repetitions=spec.repetitions,
        notes=(*layered.notes, *unchecked, told, *not_whole),
        peak_bytes=peak.alive if peak else None,
        process_bytes=peak.unused if peak else 0,
        tracing=tracing,
        by_parts=True,
    )


def _sizes(sketch: Sketch, device: torch.device) -> str:
    asked, room = bytes_text(needed(sketch)), bytes_text(free(device))
    return f"a profile of the whole model would take {asked}, {room} are free"


def _impossible(sizes: str, error: Exception) -> InvalidInput:
    reason = f"the model cannot be profiled by parts: {first_line(error)}"
    return InvalidInput(
        f"{sizes}, and {reason}" if sizes else reason,
        "Let the model be made and run on tensors that have shapes alone, or profile it as a "
        "whole on a node that holds it.",
    )


def _report(reporter: Reporter, phase: str, done: int, layers: int) -> None:
    reporter(Progress(phase, done, layers))


def _whole(
    definition: LoadedDefinition,
    batch: Batch,
    spec: ProfileSpec,
    device: torch.device,
    parts: PartTimes,
) -> StepPeak:
    """Time the uncut model into `parts`; its peak."""
    with autocast(device, spec.precision):
        granularity = spec.granularity or None
        layered = prepare(definition, batch, device=device, granularity=granularity)
    bench = bench_of(layered, 0, len(layered.layers), definition.loss, spec.precision)
    inputs = tensors(batch[0])
    repeated(bench, inputs, batch[1], spec.repetitions)
    parts.times.whole.add(bench.times)
    with untouched(layered.model):
        return step_peak(bench, inputs, batch[1])
