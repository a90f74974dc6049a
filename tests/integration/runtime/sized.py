"""The training's main with other sizes: `SHARD` and `BLOCK` in bytes, from the environment. It
prints by how much saving the model made the process grow: "rank 0 grew by 4096 bytes"."""

import os
import re
import sys
from pathlib import Path

from workers.runtime import main, run
from workers.runtime.checkpoints import tensor_files, trained_model
from workers.runtime.checkpoints.trained_model import save

PROCESS = Path("/proc/self")


def resident(which: str) -> int:
    """Bytes: "VmRSS" of now, "VmHWM" at most since the last `measured`."""
    found = re.search(rf"{which}:\s+(\d+) kB", (PROCESS / "status").read_text())
    assert found
    return int(found[1]) * 1024


def measured(*given) -> None:
    (PROCESS / "clear_refs").write_text("5")  # the most so far is what there is now
    before = resident("VmRSS")
    save(*given)
    print(f"rank {os.environ['RANK']} grew by {resident('VmHWM') - before} bytes", flush=True)


if __name__ == "__main__":
    trained_model.SHARD = int(os.environ.get("SHARD", trained_model.SHARD))
    trained_model.BLOCK = int(os.environ.get("BLOCK", trained_model.BLOCK))
    tensor_files.BLOCK = trained_model.BLOCK
    run.save = measured
    sys.exit(main.main())
