"""The file of a stage's copy, written under another name first: one that has its name is whole."""

import os
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from backend.runs.events import Saved
from workers.runtime.checkpoints.tensor_files import write
from workers.runtime.reports.reporter import Reporter


@dataclass(frozen=True, slots=True)
class StageCopy:
    """What is written of a pipeline, and what is said once the file is there."""

    tensors: dict[str, Tensor]
    pipeline: int
    event: Saved

    def write(self, reporter: Reporter) -> None:
        path = Path(self.event.path)
        unfinished = path.with_suffix(".unfinished")
        write(unfinished, self.tensors, {"lane": str(self.pipeline)})
        os.replace(unfinished, path)
        reporter(self.event)
