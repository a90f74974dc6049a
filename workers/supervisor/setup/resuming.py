"""Where an attempt begins: the newest checkpoint that is whole, laid out for the ranks."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from backend.codec import to_json
from backend.errors import StageflowError
from backend.runs.attempts.checkpoints import Checkpoint
from backend.runs.job import Job
from backend.runs.request.spec import TrainSpec
from backend.services.runs.attempt import Attempt
from workers.supervisor.reporting.checkpoint_copy import copy_file
from workers.supervisor.setup.preparation import job_file

FOLDER = "checkpoint"
"""Beside the definition, where the ranks may read and not write."""


class CheckpointDamaged(StageflowError):
    """A file of a checkpoint is not what was written."""


class CheckpointGone(StageflowError):
    """The checkpoint that a run was to go on from is not there any more."""

    advice = "Resume the earlier run again, or launch it from the beginning."


def resumed(attempt: Attempt, job: Job, say: Callable[[str], None]) -> Job:
    """The job with its checkpoint laid out, each file compared with its hash; the job as it is
    where the attempt starts from the beginning. Raises `CheckpointGone`, `OSError`."""
    _tidy(attempt)
    place = checkpoint_place(job)
    for checkpoint in attempt.beginnings():
        try:
            _lay_out(checkpoint, place)
        except CheckpointDamaged as fault:
            say(f"{fault}; trying the one before")
            continue
        attempt.resumed(checkpoint)
        mark, made_by = checkpoint.mark, f"attempt {checkpoint.attempt}"
        say(f"continuing from the checkpoint of {made_by} after {mark.step} steps")
        is_own = attempt.is_cut_alike(checkpoint)
        job = replace(job, own_checkpoint=is_own, watched=attempt.watched())
        return beginning(job, place, mark.epoch, mark.samples)
    spec = attempt.run.spec
    if isinstance(spec, TrainSpec) and spec.checkpoint_id is not None:
        raise CheckpointGone(f"checkpoint {spec.checkpoint_id} cannot be read on this node")
    attempt.begun_anew()
    return job


def checkpoint_place(job: Job) -> Path:
    """Where the ranks of this host find their checkpoint."""
    return Path(job.definition).parent / FOLDER


def beginning(job: Job, place: Path, epoch: int, samples: int) -> Job:
    """The job as it goes on from the checkpoint in `place`; its file says so too."""
    job = replace(job, checkpoint=str(place), epoch=epoch, samples=samples)
    job_file(job).write_bytes(to_json(Job, job))
    return job


def _lay_out(checkpoint: Checkpoint, place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for file in checkpoint.files:
        try:
            with (checkpoint.folder / file.name).open("rb") as source:
                found = copy_file(source, place / file.name)
        except FileNotFoundError:
            raise CheckpointDamaged(f"{checkpoint.folder / file.name} does not exist") from None
        if found != file:
            raise CheckpointDamaged(f"{checkpoint.folder / file.name} is not what was written")


def _tidy(attempt: Attempt) -> None:
    """Remove what earlier attempts copied of checkpoints that were never completed."""
    runs_own = attempt.checkpoint_folder(0).parent
    kept = {checkpoint.folder for checkpoint in attempt.beginnings()}
    for folder in runs_own.iterdir() if runs_own.is_dir() else ():
        if folder not in kept and not folder.name.startswith(f"{attempt.number}-"):
            shutil.rmtree(folder, ignore_errors=True)
