"""The training's main, measured: by how much saving the model made the process grow is printed
("rank 0 grew by 4096 bytes"), and the keys that it reads of a checkpoint are lines of the file
`read-RANK` beside the job. `SHARD` and `BLOCK` are sizes in bytes, from the environment."""

import os
import re
import sys
from pathlib import Path

from torch import Tensor

from workers.runtime import main as runtime
from workers.runtime import run
from workers.runtime.checkpoints import stage_state, tensor_files, trained_model
from workers.runtime.checkpoints.trained_model import save

PROCESS = Path("/proc/self")
RANK = os.environ.get("RANK", "0")


def resident(which: str) -> int:
    """Bytes: "VmRSS" of now, "VmHWM" at most since the last `measured`."""
    found = re.search(rf"{which}:\s+(\d+) kB", (PROCESS / "status").read_text())
    assert found
    return int(found[1]) * 1024


def measured(*given) -> None:
    (PROCESS / "clear_refs").write_text("5")  # the most so far is what there is now
    before = resident("VmRSS")
    save(*given)
    print(f"rank {RANK} grew by {resident('VmHWM') - before} bytes", flush=True)


class Noted(stage_state._Kept):
    """Writes down what is read."""

    def _read(self, key: str, like: Tensor | None) -> Tensor:
        with Path(sys.argv[1]).with_name(f"read-{RANK}").open("a") as notes:
            notes.write(f"{key}\n")
        return super()._read(key, like)


def main() -> None:
    trained_model.SHARD = int(os.environ.get("SHARD", trained_model.SHARD))
    trained_model.BLOCK = int(os.environ.get("BLOCK", trained_model.BLOCK))
    tensor_files.BLOCK = trained_model.BLOCK
    run.save, stage_state._Kept = measured, Noted
    runtime.main()
