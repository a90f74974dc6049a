"""Weights & Biases: online on its server, or offline into files that `wandb sync` takes there.

A row has the number of its point as its step, so that one that comes again is left out by W&B; its
charts are drawn over "update".
"""

import os
import shutil
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from backend.runs.history.followed import TrackerPlace
from backend.runs.states import RunState
from backend.trackers.tracker import Told, TrackerAway, TrackerRefuses, require

SCHEME = "wandb"
PUBLIC = "api.wandb.ai"
QUIET = {"WANDB_ERROR_REPORTING": "false", "WANDB_SILENT": "true"}
SECONDS = 30.0
"""For it to answer."""
MOST = 64
"""Characters of a tag."""


@dataclass(frozen=True, slots=True)
class Wandb:
    """`folder` is where it writes; `entity` "" = that of the key."""

    folder: Path
    project: str
    entity: str = ""
    key: str = ""
    server: str = f"https://{PUBLIC}"
    offline: bool = False
    name: str = "wandb"
    title: str = "Weights & Biases"
    pause: float = 60.0

    @property
    def whole(self) -> bool:
        """Files of an offline run cannot be gone on with."""
        return self.offline

    @property
    def where(self) -> str:
        return str(self.folder) if self.offline else f"{self.server}, project {self.project}"

    def send(self, told: Told, place: TrackerPlace) -> TrackerPlace:
        """Each time the run is taken up and closed: what was told is then written."""
        require("wandb", "wandb")
        os.environ.update(QUIET)
        folder = self.folder / told.folder
        if self.offline:
            shutil.rmtree(folder, ignore_errors=True)  # of a try that was cut off
        folder.mkdir(parents=True, exist_ok=True)
        import wandb

        try:
            run = self._opened(wandb, told, folder)
            number = _log(run, told)
            run.finish(exit_code=1 if told.ended is RunState.FAILED else 0)
            wandb.teardown()  # its process writes the last of it when it ends
        except wandb.errors.AuthenticationError:
            raise self._refused() from None
        except wandb.errors.Error as fault:
            words = " ".join(str(fault).split())[:300].replace(self.key or "\0", "...")
            if "401" in words or "403" in words or "API key" in words:
                raise self._refused() from None
            raise TrackerAway(
                f"Weights & Biases does not answer: {words}", "Stageflow tries again by itself."
            ) from None
        remote = str(folder) if self.offline else f"{self.project}/{told.key}"
        return TrackerPlace(remote, "" if self.offline else run.url or "", str(number))

    def _opened(self, wandb: Any, told: Told, folder: Path) -> Any:
        settings = wandb.Settings(
            mode="offline" if self.offline else "online",
            api_key=self.key or None,
            base_url=self.server,
            init_timeout=SECONDS,
            root_dir=str(folder),
            console="off",
            silent=True,
            disable_git=True,
            save_code=False,
            x_disable_stats=True,
            x_disable_meta=True,
            x_disable_machine_info=True,
        )
        return wandb.init(
            entity=self.entity or None,
            project=self.project,
            id=told.key,
            name=told.title[:128],
            config={**told.parameters, **told.tags},
            tags=[label[:MOST] for label in told.labels],
            notes=told.page,
            resume=None if self.offline else "allow",
            reinit="create_new",
            settings=settings,
        )

    def _refused(self) -> TrackerRefuses:
        return TrackerRefuses(
            "Weights & Biases refuses the key",
            "Put the right one into STAGEFLOW_TRACKERS, start again, and follow the run again.",
        )


def wandb_at(address: str, folder: Path) -> Wandb:
    """Of `wandb://KEY@HOST/ENTITY/PROJECT` (no host: that of Weights & Biases itself; no entity:
    that of the key), or of `wandb+offline:///PROJECT`."""
    parts = urlsplit(address)
    entity, _, project = parts.path.strip("/").rpartition("/")
    host = parts.netloc.rpartition("@")[2] or PUBLIC
    return Wandb(
        folder,
        unquote(project) or "stageflow",
        unquote(entity),
        unquote(parts.username or ""),
        f"{'http' if parts.scheme == f'{SCHEME}+http' else 'https'}://{host}",
        offline=parts.scheme == f"{SCHEME}+offline",
    )


def _log(run: Any, told: Told) -> int:
    """One row a point; how many rows the run has then."""
    run.define_metric("update")
    run.define_metric("*", step_metric="update")
    number = told.first
    for number, point in enumerate(told.points, told.first + 1):
        if isfinite(point.value):
            row = {point.name: point.value, "update": point.step, "epoch": point.epoch}
            run.log({**row, "_timestamp": point.time}, step=number)
    return number
