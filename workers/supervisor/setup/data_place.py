"""Where a run's files lie on this node (data, tokenizer, weights), and which its ranks may see."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from backend.errors import StageflowError
from backend.runs.job import Job
from backend.runs.request.spec import RunSpec, TrainSpec
from backend.settings import Settings

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?(@[A-Za-z0-9][\w.-]*)?")
"""With a revision or without."""
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
    return str(_allowed(spec.data.path, settings))


def tokenizer_place(spec: RunSpec, settings: Settings) -> str:
    """The path of the run's tokenizer; "" where it needs none. Raises `DataNotAllowed`."""
    if not isinstance(spec, TrainSpec) or not spec.data.text.tokenizer:
        return ""
    return str(_allowed(spec.data.text.tokenizer, settings))


def weights_place(spec: RunSpec, settings: Settings) -> str:
    """The path of the weights to begin with, where the run names one on this node; else "". Files
    of a folder may be links, as the hub's cache has them, within what is allowed. Raises
    `DataNotAllowed`."""
    if not isinstance(spec, TrainSpec) or not spec.weights_path:
        return ""
    place = _allowed(spec.weights_path, settings)
    for link in _links(place):
        _allowed(str(link), settings)
    return str(place)


def hub_name(spec: RunSpec, settings: Settings) -> str | None:
    """The name on the hub that the run asks for; None where it asks for none, or where a folder
    of this node goes by it."""
    if not isinstance(spec, TrainSpec) or spec.data.name != "huggingface":
        return None
    path = spec.data.path
    is_here = _found(path, settings.data_folders) is not None
    return path if HUB_NAME.fullmatch(path) and not is_here else None


def shown_of(job: Job) -> tuple[Path, ...]:
    """What of the machine the ranks see for their data, tokenizer and weights: the file or folder
    itself, of a Python file the folder in which it lies, and what the links in a folder of weights
    lead to (the node's files, or what another run has left)."""
    if not isinstance(job.spec, TrainSpec):
        return ()
    shown = []
    if job.data:
        path = Path(job.data)
        shown.append(path.parent if job.spec.data.name == "python" else path)
    if job.tokenizer:
        shown.append(Path(job.tokenizer))
    if job.spec.weights_path:
        shown.append(Path(job.weights))
    if job.weights:
        shown += (link.resolve() for link in _links(Path(job.weights)))
    return tuple(shown)


def _links(place: Path) -> Iterator[Path]:
    """The links in a folder of weights."""
    return (file for file in sorted(place.glob("*.safetensors*")) if file.is_symlink())


def _allowed(path: str, settings: Settings) -> Path:
    found = _found(path, settings.data_folders)
    if found is None:
        raise DataNotAllowed(
            f"{path} is not in a folder that {settings.node} allows runs to read",
            _advice(settings),
        )
    return found


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
    return f"Runs may read {told}: put the files there, or correct the path."
