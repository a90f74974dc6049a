"""Profile a definition: `python -m workers.profiler.main job.json`."""

import os
import sys
from pathlib import Path

from backend.codec import from_json, to_json
from backend.errors import InvalidInput
from backend.profiles.profile import Layer, ModelGraph, Profile
from backend.runs.events import ProfileReady, Progress
from backend.runs.job import Job
from backend.runs.spec import ProfileSpec
from workers.definitions.layers import LayeredModel
from workers.definitions.loader import load
from workers.definitions.prepare import prepare
from workers.definitions.samples import mapped
from workers.profiler.measure import WARM_UP, Measured, measure
from workers.runtime import data
from workers.runtime.process import (
    device,
    device_name,
    die_with_parent,
    keep_freed_memory,
    use_one_thread,
)
from workers.runtime.reporter import Reporter

PROFILE_FILE = "profile.json"


def main() -> int:
    """Exit code 0 when the profile is written; otherwise a `Failed` line was printed."""
    die_with_parent()
    use_one_thread()
    keep_freed_memory()
    reporter = Reporter(rank=0)
    return reporter.report(lambda: run(Path(sys.argv[1]), reporter))


def run(job_file: Path, reporter: Reporter) -> int:
    """Profile as the job says and write `profile.json` into its folder; 0 epochs."""
    job: Job = from_json(Job, job_file.read_bytes())
    if not isinstance(job.spec, ProfileSpec):
        raise InvalidInput(f"{job_file} asks for a {job.spec.kind} run, not for a profile")
    profile = profiled(job.name, Path(job.definition), job.spec, reporter)
    path = Path(job.folder) / PROFILE_FILE
    path.write_bytes(to_json(Profile, profile))
    reporter(ProfileReady(str(path)))
    return 0


def profiled(name: str, definition_file: Path, spec: ProfileSpec, reporter: Reporter) -> Profile:
    """The profile of a definition on this process's device; reports its progress."""
    _check(spec)
    reporter(Progress("load", 0, 1))
    chosen = device(int(os.environ.get("LOCAL_RANK", "0")))
    definition = load(definition_file)
    batch = data.example(definition, spec.microbatch)
    layered = prepare(definition, batch, device=chosen)
    inputs, targets = (mapped(each, lambda t: t.to(chosen)) for each in batch)
    reporter.started()
    repetitions = measure(layered, (inputs, targets), definition.loss, spec.repetitions)
    for done, so_far in enumerate(repetitions, start=1):
        measured = so_far
        reporter(_progress(done, spec.repetitions))
    forward, backward, _ = measured.seconds(measured.whole)
    profile = Profile(
        name=name,
        graph=ModelGraph(_layers(layered, measured), layered.edges),
        microbatch=spec.microbatch,
        device=device_name(chosen),
        whole_forward=forward,
        whole_backward=backward,
        repetitions=spec.repetitions,
        notes=layered.notes,
    )
    share = profile.compute / max(forward + backward, 1e-9)
    reporter.log(
        f"{len(profile.layers)} layers at {spec.microbatch} samples: together "
        f"{profile.compute * 1e3:.2f} ms, {share:.2f} times the whole model."
    )
    return profile


def _layers(layered: LayeredModel, measured: Measured) -> tuple[Layer, ...]:
    timed = map(measured.seconds, measured.layers)
    return tuple(
        Layer(
            name=layer.name,
            kind=layer.kind,
            forward=forward,
            backward=backward,
            output_bytes=layer.output_bytes,
            parameter_bytes=layer.parameter_bytes,
            update=update,
        )
        for layer, (forward, backward, update) in zip(layered.layers, timed, strict=True)
    )


def _progress(done: int, repetitions: int) -> Progress:
    if done <= WARM_UP:
        return Progress("warm up", done, WARM_UP)
    return Progress("layers", done - WARM_UP, repetitions)


def _check(spec: ProfileSpec) -> None:
    if spec.microbatch < 1 or spec.repetitions < 1:
        raise InvalidInput(
            f"a profile of {spec.repetitions} repetitions at {spec.microbatch} samples",
            "Ask for at least one of each.",
        )


if __name__ == "__main__":
    sys.exit(main())
