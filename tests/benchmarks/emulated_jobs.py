"""Jobs that emulate a plan, and what their ranks measured (`emulated_rank.py` runs them)."""

from pathlib import Path
from typing import Any

from backend.codec import to_json
from backend.pipeline.columns import decode
from backend.pipeline.timeline import Timeline
from backend.planning.plan import Plan
from backend.runs.job import Emulation, Job
from backend.runs.request.spec import TrainSpec

FILE = "job.json"


def emulated_job(plan: Plan, emulation: Emulation, folder: Path, **training: Any) -> Path:
    """A new folder with the job; `training` are further fields of its spec."""
    folder.mkdir()
    spec = TrainSpec(1, plan, epochs=1, **training)
    size = plan.partition.num_devices
    job = Job(1, 1, folder.name, spec, "", str(folder), size, emulation=emulation)
    (folder / FILE).write_bytes(to_json(Job, job))
    return folder


def measured_timeline(folder: Path) -> Timeline:
    """The spans of all ranks."""
    files = sorted(folder.glob("spans-*.arrow"))
    return Timeline.joined([decode(file.read_bytes()) for file in files])
