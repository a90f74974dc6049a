"""What the ranks of an attempt are given: the definition as a file and job.json."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from backend.bootstrap import Backend
from backend.codec import to_json
from backend.errors import NotFound, StageflowError
from backend.runs.dispatch.placement import world_size
from backend.runs.job import Emulation, Job
from backend.runs.request.spec import ProfileSpec, RunSpec, TrainSpec
from backend.runs.run import Run
from backend.settings import Settings
from workers.sandbox.room import Room, work_folder
from workers.supervisor.ranks import orphans
from workers.supervisor.setup.data_place import place_of, shown_of, tokenizer_place, weights_place
from workers.supervisor.setup.removal import remove

JOB_FILE = "job.json"


class FolderInUse(StageflowError):
    """Two databases share one home, or two hosts of a run, and meet in a folder."""


def prepare(backend: Backend, run: Run, folder: Path) -> Job:
    """Make `folder` (readable by its owner alone) and fill it; the ranks write into a folder
    of their own within. Raises `OSError`, `NotFound`, `DataNotAllowed`."""
    clear(folder)
    folder.mkdir(parents=True, mode=0o700)
    definition = backend.definitions.get(run.spec.definition_id)
    source = folder / "definition" / Path(definition.filename).name
    source.parent.mkdir()
    source.write_bytes(backend.definitions.source(definition.id))
    job = Job(
        run_id=run.id,
        attempt=run.attempt,
        name=definition.name,
        spec=run.asked,
        definition=str(source),
        folder=str(work_folder(folder)),
        world_size=world_size(run.asked),
        weights=_weights(backend, run.asked, source.parent),
        emulation=_emulation(backend, run.asked),
        data=place_of(run.asked, backend.settings),
        tokenizer=tokenizer_place(run.asked, backend.settings),
        build_seconds=backend.settings.build,
        started=run.started_at.timestamp() if run.started_at else 0.0,
    )
    job_file(job).write_bytes(to_json(Job, job))
    return job


def _weights(backend: Backend, spec: RunSpec, folder: Path) -> str:
    """The path of the weights to begin with: beside the definition, or where the node has them;
    "" where there are none."""
    if isinstance(spec, ProfileSpec):
        return ""
    if spec.weights_id is not None:
        path = folder / "weights.safetensors"
        path.write_bytes(backend.definitions.source(spec.weights_id))
        return str(path)
    if spec.weights_run is not None:
        return str(_trained(backend, spec.weights_run, folder / f"run-{spec.weights_run}"))
    return weights_place(spec, backend.settings)


def _trained(backend: Backend, run_id: int, place: Path) -> Path:
    """The folder `place` with links to the trained model of a run: of many GiB nothing is copied.
    Raises `NotFound`."""
    files = backend.runs.artifacts.trained_model(run_id)
    gone = [file.name for file in files if not file.path.is_file()]
    if gone:
        raise NotFound(
            f"{', '.join(gone)} of the trained model of run {run_id} "
            f"{'is' if len(gone) == 1 else 'are'} not on {backend.settings.node}",
            "Put the model into a folder of STAGEFLOW_DATA there, or upload its file.",
        )
    place.mkdir()
    for file in files:
        with suppress(PermissionError):  # of another owner: the ranks say whether they read it
            file.path.chmod(0o644)  # files of before were their owner's alone
        (place / file.name).symlink_to(file.path.resolve())
    return place


def _emulation(backend: Backend, spec: RunSpec) -> Emulation | None:
    """The plan's profile and cluster where devices are to be emulated."""
    if isinstance(spec, ProfileSpec) or not spec.emulate or spec.plan_id is None:
        return None
    stored = backend.plans.get(spec.plan_id)
    profile = backend.profiles.get(stored.profile_id).profile
    return Emulation(profile, stored.cluster, spec.emulate)


def room_of(job: Job, settings: Settings) -> Room:
    """Where the ranks of `job` live."""
    shown = (job_file(job), Path(job.definition).parent)
    folder = job_file(job).parent
    return Room(folder, settings.home, shown, shown_of(job), settings.shared_folder)


def clear(folder: Path) -> None:
    """Remove working files that a run of the same number in another database left here;
    raises `FolderInUse` where that run still goes on, or another host works here."""
    match orphans.holder(folder):
        case None:
            pass
        case orphans.HERE:
            raise FolderInUse(
                f"{folder} is in use by a run of another database, or of another agent",
                "Give each database, and each agent, a STAGEFLOW_HOME of its own.",
            )
        case host:
            raise FolderInUse(
                f"{folder} is in use by an agent on {host}",
                "Give each host a STAGEFLOW_HOME of its own, on its own disk; what hosts share "
                f"goes into STAGEFLOW_SHARED. If {host} is gone for good, remove that folder.",
            )
    if folder.exists():
        remove(folder)


def job_file(job: Job) -> Path:
    """Beside the folder in which the ranks write, so that they cannot change it."""
    return Path(job.folder).parent / JOB_FILE


def rank_command(job: Job) -> Sequence[str]:
    """The command line of a rank, which can be run by hand too."""
    match job.spec:
        case ProfileSpec():
            module = "workers.profiler.main"
        case TrainSpec():
            module = "workers.runtime.main"
    return [sys.executable, "-u", "-m", module, str(job_file(job))]
