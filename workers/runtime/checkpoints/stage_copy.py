"""The file of a stage's copy."""

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
        write(Path(self.event.path), self.tensors, {"lane": str(self.pipeline)})
        reporter(self.event)
