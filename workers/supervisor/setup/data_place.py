"""Where the data of a run lie on this node, and what of that its ranks may see."""

import os
import re
from pathlib import Path

from backend.errors import StageflowError
from backend.runs.job import Job
from backend.runs.request.spec import RunSpec, TrainSpec
from backend.settings import Settings

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
"""As the hub names data sets: "mnist", "stanfordnlp/imdb"."""


class DataNotAllowed(StageflowError):
    """A run asks for files that this node's operator has not opened to runs."""


def place_of(spec: RunSpec, settings: Settings) -> str:
    """The path of the run's data, links followed; "" where it needs none. A path that is not
    absolute is sought in each allowed folder. Raises `DataNotAllowed`."""
    if not isinstance(spec, TrainSpec) or not spec.data.path:
        return ""
    if (name := hub_name(spec, settings)) is not None:
        return str(settings.hub_folder / name)
    found = _found(spec.data.path, settings.data_folders)
    if found is None:
        raise DataNotAllowed(
            f"{spec.data.path} is not in a folder that {settings.node} allows runs to read",
            _advice(settings),
        )
    return str(found)


def hub_name(spec: RunSpec, settings: Settings) -> str | None:
    """The name on the hub that the run asks for; None where it asks for none, or where a folder
    of this node goes by it."""
    if not isinstance(spec, TrainSpec) or spec.data.name != "huggingface":
        return None
    path = spec.data.path
    is_here = _found(path, settings.data_folders) is not None
    return path if HUB_NAME.fullmatch(path) and not is_here else None


def shown_of(job: Job) -> Path | None:
    """What of the machine the ranks see for their data: the file or folder itself, and of a
    Python file the folder in which it lies."""
    if not job.data or not isinstance(job.spec, TrainSpec):
        return None
    path = Path(job.data)
    return path.parent if job.spec.data.name == "python" else path


def _found(path: str, folders: tuple[Path, ...]) -> Path | None:
    """`path` in one of the folders, whatever links lead there."""
    for folder in folders:
        place = (folder / path).resolve()
        if place.is_relative_to(folder.resolve()) and place.exists():
            return place
    return None


def _advice(settings: Settings) -> str:
    if not settings.data_folders:
        return "Set STAGEFLOW_DATA to the folders with data there, and start the agent again."
    told = os.pathsep.join(map(str, settings.data_folders))
    return f"Runs may read {told}: put the data there, or correct the path."
