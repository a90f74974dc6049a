"""Ranks of one job after the other, forked from a process that has imported what their model needs.

`MODULE job.json ...`: what rank `n` prints is in `said-n` beside its job, and all exit codes are in
`codes`.
"""

import os
import sys
from importlib import import_module
from pathlib import Path

from backend.codec import from_json
from backend.runs.job import Job
from tests.ports import free_port
from workers.runtime.main import main as rank_main


def main() -> None:
    import_module(sys.argv[1])
    for name in sys.argv[2:]:
        file = Path(name)
        job: Job = from_json(Job, file.read_bytes())
        port = str(free_port())
        ranks = [_forked(file, rank, job.world_size, port) for rank in range(job.world_size)]
        codes = [os.waitstatus_to_exitcode(os.waitpid(rank, 0)[1]) for rank in ranks]
        (file.parent / "codes").write_text(" ".join(map(str, codes)))


def _forked(file: Path, rank: int, size: int, port: str) -> int:
    """The rank's process."""
    if pid := os.fork():
        return pid
    try:
        os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(size)}
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        for stream in (1, 2):
            place = file.parent / f"said-{rank}"
            os.dup2(os.open(place, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600), stream)
        sys.argv = ["rank", str(file)]
        rank_main()
    finally:
        os._exit(1)
