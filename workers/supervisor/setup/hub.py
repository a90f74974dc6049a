"""Brings data sets from the Hugging Face hub: files alone, none of their code is ever run."""

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

from backend.errors import StageflowError, first_line
from backend.runs.request.spec import RunSpec
from backend.settings import Settings
from workers.supervisor.setup.data_place import hub_name

TABLES = ("*.parquet", "*.csv", "*.arrow", "*.json")
LOOK = 0.5
"""Seconds between looks whether the run still goes on."""


class HubUnreachable(StageflowError):
    """A data set cannot be brought: no hub answers, or it has none of that name."""


def fetched(spec: RunSpec, settings: Settings, goes_on: Callable[[], bool]) -> bool:
    """Bring what the run asks for into the hub's folder, unless it is there; False where
    `goes_on` says that the run is over first. Raises `HubUnreachable`."""
    name = hub_name(spec, settings)
    if name is None or (settings.hub_folder / name).is_dir():
        return True
    fault: list[Exception] = []
    worker = threading.Thread(target=_brought, args=(name, settings.hub_folder, fault), daemon=True)
    worker.start()
    while worker.is_alive():
        worker.join(LOOK)
        if worker.is_alive() and not goes_on():
            return False
    if fault:
        raise HubUnreachable(
            f"the data set {name!r} cannot be downloaded from the Hugging Face hub: "
            f"{first_line(fault[0])}",
            "Correct the name, let this node reach the hub, or give the path of a folder that "
            "`datasets` saved (save_to_disk).",
        )
    return True


def _brought(name: str, hub: Path, fault: list[Exception]) -> None:
    """Under another name first: a folder that has its name is whole. A name with a revision
    (`somebody/set@9f3c`) has the same content on every node and day."""
    from huggingface_hub import snapshot_download

    part = hub / f"{name}.part"
    repository, _, revision = name.partition("@")
    try:
        snapshot_download(
            repository,
            repo_type="dataset",
            revision=revision or None,
            local_dir=part,
            token=False,
            allow_patterns=list(TABLES),
        )
        shutil.rmtree(part / ".cache", ignore_errors=True)
        part.rename(hub / name)
    except Exception as error:
        fault.append(error)
