"""Profile a definition: `python -m workers.profiler.main job.json`."""

import gc
import os
import signal
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

if __name__ == "__main__":
    gc.disable()

from backend.codec import from_json, to_json
from backend.cores import MUCH
from backend.ending import end_quickly, keep_imports
from backend.errors import InvalidInput
from backend.profiles.profile import Profile
from backend.runs.events import ProfileReady, Progress
from backend.runs.job import Job
from backend.runs.request.spec import ProfileSpec
from workers.data import catalog
from workers.definitions.loader import load
from workers.definitions.samples import mapped
from workers.devices import versions
from workers.profiler.coding_speed import coding_speeds
from workers.profiler.described import described
from workers.profiler.message_overhead import message_overhead
from workers.profiler.parts_profile import parts_profile, sketch_for_parts
from workers.profiler.process_memory import private_bytes, process_bytes
from workers.profiler.whole_profile import Stopped, whole_profile
from workers.runtime.process import (
    device,
    device_name,
    die_with_parent,
    import_late,
    keep_freed_memory,
    tell_stacks,
    use_one_thread,
)
from workers.runtime.reports.building import building
from workers.runtime.reports.core_meter import CoreMeter
from workers.runtime.reports.event_pipe import event_pipe
from workers.runtime.reports.reporter import Reporter

PROFILE_FILE = "profile.json"
SHARED = (
    "These seconds were measured while others had {percent:.0f}\u00a0% of the time of the "
    "profiler's core. Their time is not counted, but what they left in the caches is: "
    "profile again when the machine is quiet."
)


def main() -> int:
    """Exit code 0 when the profile is written; otherwise a `RankError` was told."""
    die_with_parent()
    end_quickly()
    tell_stacks()
    use_one_thread()
    keep_freed_memory()
    reporter = Reporter(rank=0, pipe=event_pipe())
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
        with building(reporter, job):
            profile = make(job.name, Path(job.definition), spec, reporter)
        own = size == job.spec.microbatch
        path = Path(job.folder) / (PROFILE_FILE if own else f"profile-{size}.json")
        path.write_bytes(to_json(Profile, profile))
        reporter(ProfileReady(str(path)))
        if profile.is_partial:
            break
    return 0


def profiled(name: str, definition_file: Path, spec: ProfileSpec, reporter: Reporter) -> Profile:
    """The profile of a definition on this process's device, by parts where the spec says so or
    the whole model does not fit; reports its progress.

    Raises `Stopped` where a SIGTERM comes before the first counted repetition, and `InvalidInput`
    on a model that neither fits nor can be made by parts.
    """
    _check(spec)
    reporter(Progress("load", 0, 1))
    chosen = device(int(os.environ.get("LOCAL_RANK", "0")))
    definition = load(definition_file, spec.parameters)
    drawn = catalog.example(definition, spec.microbatch)
    inputs, targets = (mapped(samples, lambda t: t.to(chosen)) for samples in drawn)
    sketch = sketch_for_parts(definition, spec, chosen)
    private = private_bytes()  # all is imported, nothing of the model's size is made
    meter = CoreMeter()
    if sketch is None:
        measure = partial(whole_profile, definition, (inputs, targets), spec, chosen, reporter)
    else:
        whole = partial(parts_profile, definition, (inputs, targets), sketch)
        measure = partial(whole, spec, chosen, reporter)
    profile = meter.computing(measure)
    taken = meter.taken if chosen.type == "cpu" else None
    is_timed = not profile.is_partial and chosen.type == "cpu"
    profile = replace(
        profile,
        name=name,
        device=device_name(chosen),
        parameters=spec.parameters,
        granularity=spec.granularity,
        precision=spec.precision,
        versions=versions(),
        process_bytes=profile.process_bytes + process_bytes(private, chosen),
        message_overhead=message_overhead() if is_timed else None,
        coding_speeds=coding_speeds() if is_timed else (),
        cores_taken=taken,
        notes=profile.notes
        + ((SHARED.format(percent=100 * taken),) if taken and taken >= MUCH else ()),
    )
    reporter.log(_summary(profile))
    return profile


def _summary(profile: Profile) -> str:
    whole = profile.whole_forward + profile.whole_backward
    beside = f", {profile.compute / whole:.2f} times the whole model" if whole else ""
    return (
        f"{len(profile.layers)} layers at {profile.microbatch} samples: together "
        f"{profile.compute * 1e3:.2f} ms{beside}."
    )


def _described(name: str, definition_file: Path, spec: ProfileSpec, reporter: Reporter) -> Profile:
    """The profile that nothing was run for."""
    reporter(Progress("load", 0, 1))
    reporter.started()
    return described(name, definition_file, spec)


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
    import_late()
    keep_imports()
    sys.exit(main())
