"""What the ranks of an attempt are given: the definition as a file and job.json."""

import sys
from collections.abc import Sequence
from pathlib import Path

import psutil

from backend.bootstrap import Backend
from backend.codec import to_json
from backend.runs.job import Job
from backend.runs.run import Run
from backend.runs.spec import ProfileSpec, RunSpec, TrainSpec

JOB_FILE = "job.json"


def prepare(backend: Backend, run: Run, folder: Path) -> Job:
    """Make `folder` (readable by its owner alone) and fill it; raises `OSError`, `NotFound`."""
    folder.mkdir(parents=True, mode=0o700)
    definition = backend.definitions.get(run.spec.definition_id)
    source = folder / "definition" / Path(definition.filename).name
    source.parent.mkdir()
    source.write_bytes(backend.definitions.source(definition.id))
    job = Job(
        run_id=run.id,
        attempt=run.attempt,
        name=definition.name,
        spec=run.spec,
        definition=str(source),
        folder=str(folder),
        world_size=world_size(run.spec),
    )
    (folder / JOB_FILE).write_bytes(to_json(Job, job))
    return job


def world_size(spec: RunSpec) -> int:
    """One process measures; a plan trains with one per device."""
    match spec:
        case ProfileSpec():
            return 1
        case TrainSpec():
            return spec.plan.partition.num_devices


def rank_command(job: Job) -> Sequence[str]:
    """The command line of a rank, which can be run by hand too."""
    match job.spec:
        case ProfileSpec():
            module = "workers.profiler.main"
        case TrainSpec():
            module = "workers.runtime.main"
    return [sys.executable, "-u", "-m", module, str(Path(job.folder) / JOB_FILE)]


def sharing(world_size: int, num_gpus: int) -> Sequence[str]:
    """What to warn of where ranks must share devices."""
    if num_gpus and world_size > num_gpus:
        return (f"{world_size} ranks share {num_gpus} GPU(s): expect longer times than planned",)
    cores = len(psutil.Process().cpu_affinity() or ()) or psutil.cpu_count() or 1
    if not num_gpus and world_size > cores:
        return (f"{world_size} ranks share {cores} CPU core(s): expect longer times than planned",)
    return ()
