"""One rank of a training run: `python -m workers.runtime.main job.json`, torchrun or not."""

import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

if __name__ == "__main__":
    gc.disable()

from backend.codec import from_json
from backend.ending import keep_imports
from backend.runs.job import Job
from backend.runs.request.spec import TrainSpec
from workers.runtime.emulated.run import emulate
from workers.runtime.messages.world import join, leave
from workers.runtime.process import (
    die_with_parent,
    import_late,
    keep_freed_memory,
    tell_stacks,
    use_one_thread,
)
from workers.runtime.reports.event_pipe import event_pipe
from workers.runtime.reports.reporter import Reporter
from workers.runtime.run import train


def before_fork(words: Sequence[str]) -> None:
    """Import what each rank of the job, whose file `words` name, would import for itself."""
    job: Job = from_json(Job, Path(words[0]).read_bytes())
    if job.emulation is None and isinstance(job.spec, TrainSpec):
        import_late(job.spec.tracing == "captured")


def main() -> NoReturn:
    """Exit code 0 when the run is done; otherwise a `RankError` was told.

    The process ends without the interpreter's own end: that stops daemon threads where they are,
    and one inside torch's C++ then aborts the process. Nor must messages to ranks that are gone
    hold it.
    """
    die_with_parent()
    tell_stacks()
    use_one_thread()
    keep_freed_memory()
    reporter = Reporter(int(os.environ.get("RANK", "0")), event_pipe())
    code = reporter.report(lambda: run(Path(sys.argv[1]), reporter))
    with suppress(Exception):  # the definition may have put anything there
        sys.stdout.flush()
    os._exit(code)


def run(job_file: Path, reporter: Reporter) -> int:
    """Meet the other ranks and train; the epochs done."""
    job: Job = from_json(Job, job_file.read_bytes())
    work = train if job.emulation is None else emulate
    epochs = work(job, join(), reporter)
    leave()
    return epochs


if __name__ == "__main__":
    with suppress(Exception):  # which `main` meets again, and tells
        before_fork(sys.argv[1:])
    keep_imports()
    main()
