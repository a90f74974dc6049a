"""Profile a definition: `python -m workers.profiler.main job.json`."""

import os
import signal
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from backend.codec import from_json, to_json
from backend.errors import InvalidInput
from backend.profiles.profile import Layer, Profile
from backend.runs.events import ProfileReady, Progress
from backend.runs.job import Job
from backend.runs.request.spec import ProfileSpec
from workers.data import catalog
from workers.definitions.definition import Loss
from workers.definitions.layers import LayeredModel
from workers.definitions.loader import load
from workers.definitions.prepare import prepare
from workers.definitions.samples import Batch, mapped, tensors
from workers.definitions.trace import untouched
from workers.devices import versions
from workers.profiler.described import described, graph_of
from workers.profiler.measure import WARM_UP, ModelTimes, benches, measure, middle
from workers.profiler.message_overhead import message_overhead
from workers.profiler.retrace import traced_again
from workers.profiler.sizes import flops, peak_bytes, saved_bytes
from workers.runtime.compute.stage import Precision, autocast
from workers.runtime.process import (
    device,
    device_name,
    die_with_parent,
    keep_freed_memory,
    use_one_thread,
)
from workers.runtime.reports.reporter import Reporter

PROFILE_FILE = "profile.json"


class Stopped(BaseException):
    """The job is to end; what is measured so far is kept as a partial profile."""


def main() -> int:
    """Exit code 0 when the profile is written; otherwise a `Failed` line was printed."""
    die_with_parent()
    use_one_thread()
    keep_freed_memory()
    reporter = Reporter(rank=0)
    try:
        return reporter.report(lambda: run(Path(sys.argv[1]), reporter))
    except Stopped:
        return 128 + signal.SIGTERM


def run(job_file: Path, reporter: Reporter) -> int:
    """Profile as the job says, a file in its folder per microbatch size, the spec's own size
    last; 0 epochs. A SIGTERM leaves what was measured of the size at hand."""
    job: Job = from_json(Job, job_file.read_bytes())
    if not isinstance(job.spec, ProfileSpec):
        raise InvalidInput(f"{job_file} asks for a {job.spec.kind} run, not for a profile")
    _check(job.spec)
    signal.signal(signal.SIGTERM, _stop)
    others = [size for size in job.spec.further if size != job.spec.microbatch]
    for size in (*dict.fromkeys(others), job.spec.microbatch):
        spec = replace(job.spec, microbatch=size)
        make = _described if spec.peak else profiled
        profile = make(job.name, Path(job.definition), spec, reporter)
        own = size == job.spec.microbatch
        path = Path(job.folder) / (PROFILE_FILE if own else f"profile-{size}.json")
        path.write_bytes(to_json(Profile, profile))
        reporter(ProfileReady(str(path)))
        if profile.is_partial:
            break
    return 0


def profiled(name: str, definition_file: Path, spec: ProfileSpec, reporter: Reporter) -> Profile:
    """The profile of a definition on this process's device; reports its progress.

    Raises `Stopped` where a SIGTERM comes before the first counted repetition.
    """
    _check(spec)
    reporter(Progress("load", 0, 1))
    chosen = device(int(os.environ.get("LOCAL_RANK", "0")))
    definition = load(definition_file, spec.parameters)
    drawn = catalog.example(definition, spec.microbatch)
    inputs, targets = (mapped(samples, lambda t: t.to(chosen)) for samples in drawn)
    with autocast(chosen, spec.precision):  # bundles have the cast dtypes
        layered = prepare(
            definition, (inputs, targets), device=chosen, granularity=spec.granularity or None
        )
        tracing, notes = traced_again(definition, inputs, layered, chosen)
    reporter.started()
    batch = inputs, targets
    measured, counted = _measured(layered, batch, definition.loss, spec, reporter)
    is_partial = counted < spec.repetitions
    sizes = None if is_partial else _sizes(layered, batch, definition.loss, spec.precision)
    forward, backward, update = measured.seconds(measured.whole)
    profile = Profile(
        name=name,
        graph=graph_of(layered, _layers(layered, measured, sizes)),
        microbatch=spec.microbatch,
        device=device_name(chosen),
        whole_forward=forward,
        whole_backward=backward,
        whole_update=update,
        repetitions=counted,
        notes=layered.notes + notes,
        peak_bytes=sizes.peak if sizes else None,
        parameters=spec.parameters,
        granularity=spec.granularity,
        precision=spec.precision,
        versions=versions(),
        tracing=tracing,
        is_partial=is_partial,
        message_overhead=None if is_partial or chosen.type != "cpu" else message_overhead(),
    )
    share = profile.compute / max(forward + backward, 1e-9)
    reporter.log(
        f"{len(profile.layers)} layers at {spec.microbatch} samples: together "
        f"{profile.compute * 1e3:.2f} ms, {share:.2f} times the whole model."
    )
    return profile


def _described(name: str, definition_file: Path, spec: ProfileSpec, reporter: Reporter) -> Profile:
    """The profile that nothing was run for."""
    reporter(Progress("load", 0, 1))
    reporter.started()
    return described(name, definition_file, spec)


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


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Per layer what is kept for the backward, and its operations; the peak of a step."""

    saved: list[int]
    flops: list[float]
    peak: int


def _sizes(layered: LayeredModel, batch: Batch, loss: Loss, precision: Precision) -> _Sizes:
    inputs, targets = tensors(batch[0]), batch[1]
    with untouched(layered.model):
        layers, whole = benches(layered, loss, precision)
        saved = saved_bytes(layers, inputs, targets)
        return _Sizes(saved, flops(layers, inputs, targets), peak_bytes(whole, inputs, targets))


def _layers(layered: LayeredModel, measured: ModelTimes, sizes: _Sizes | None) -> tuple[Layer, ...]:
    layers = []
    for index, (layer, times) in enumerate(zip(layered.layers, measured.layers, strict=True)):
        forward, backward, update = measured.seconds(times)
        layers.append(
            Layer(
                name=layer.name,
                kind=layer.kind,
                forward=forward,
                backward=backward,
                output_bytes=layer.output_bytes,
                parameter_bytes=layer.parameter_bytes,
                update=update,
                backward_input=measured.backward_input(times),
                backward_weight=measured.backward_weight(times),
                adding=middle(times.adding),
                out_of_place_update=middle(times.out_of_place_update),
                saved_bytes=sizes.saved[index] if sizes else None,
                buffer_bytes=layer.buffer_bytes,
                frozen_bytes=layer.frozen_bytes,
                flops=sizes.flops[index] if sizes else None,
            )
        )
    return tuple(layers)


def _progress(done: int, repetitions: int) -> Progress:
    if done <= WARM_UP:
        return Progress("warm up", done, WARM_UP)
    return Progress("layers", done - WARM_UP, repetitions)


def _stop(signum: int, frame: object) -> None:
    raise Stopped


def _check(spec: ProfileSpec) -> None:
    smallest = min(spec.microbatch, *spec.further, spec.microbatch)
    if smallest < 1 or spec.repetitions < 1:
        raise InvalidInput(
            f"a profile of {spec.repetitions} repetitions at {smallest} samples",
            "Ask for at least one of each.",
        )


if __name__ == "__main__":
    sys.exit(main())
