"""The file of a stage's copy, written under another name first: one that has its name is whole."""

import os
from dataclasses import dataclass
from pathlib import Path

from safetensors.torch import save_file
from torch import Tensor

from backend.runs.events import Saved
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
        save_file(self.tensors, unfinished, {"lane": str(self.pipeline)})
        os.replace(unfinished, path)
        reporter(self.event)
