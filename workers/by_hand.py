"""Prepare a training for ranks that somebody starts: `python -m workers.by_hand FOLDER < spec`.

Ranks are plain processes of torch.distributed: torchrun starts them as an agent does, though
without a sandbox, a lease or a history.
"""

import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from backend.bootstrap import connect
from backend.codec import from_json
from backend.errors import InvalidInput, StageflowError
from backend.runs.job import Job
from backend.runs.request.spec import RunSpec
from backend.runs.run import Run, RunSummary
from backend.runs.states import RunState
from workers.supervisor.setup.preparation import prepare, rank_command

PORT = 29500


def torchrun(job: Job, nodes: int) -> str:
    """The line for every one of so many machines, of which HEAD is the first one's address. Raises
    `InvalidInput` where they do not share the ranks evenly."""
    if job.world_size % nodes:
        raise InvalidInput(
            f"{job.world_size} ranks on {nodes} machines are not as many on each",
            "Ask for machines that share them evenly, or plan for other devices.",
        )
    command = list(rank_command(job))
    module = command[command.index("-m") :]
    if nodes == 1:
        meeting = ["--standalone"]
    else:
        meeting = [f"--nnodes={nodes}", "--rdzv-backend=c10d", f"--rdzv-endpoint=HEAD:{PORT}"]
    words = ["torchrun", *meeting, f"--nproc-per-node={job.world_size // nodes}", *module]
    return shlex.join(words).replace("HEAD", "$HEAD")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the lines for a shell; 1 with a message and an advice where that cannot be."""
    folder = Path((arguments or sys.argv[1:])[0])
    try:
        spec: RunSpec = from_json(RunSpec, sys.stdin.buffer.read())
        backend = connect()
        now = datetime.now(UTC)
        nobody = (None, now, None, None, None, RunSummary(), None, False)
        job = prepare(backend, Run(0, "by hand", spec, RunState.QUEUED, 0, *nobody), folder)
        Path(job.folder).mkdir(exist_ok=True)
        nodes = spec.pool.nodes if spec.pool else 1
        line = torchrun(job, nodes)
    except StageflowError as fault:
        print(f"{fault}\n{fault.advice}", file=sys.stderr)
        return 1
    if nodes == 1:
        print(line)
    else:
        print('export HEAD=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)')
        print(f"srun --nodes={nodes} --ntasks-per-node=1 {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
