"""A rank that waits for jobs on its standard input and runs one after the other: torch is imported
once for all of them."""

import sys
from pathlib import Path

from backend.codec import from_json
from backend.runs.job import Job
from workers.runtime.messages.world import join, leave
from workers.runtime.process import die_with_parent, keep_freed_memory, use_one_thread
from workers.runtime.reports.reporter import Reporter
from workers.runtime.run import train

OVER = "the job is over"


def main() -> int:
    """The exit code of the first job that fails: its ranks are not at one any more."""
    die_with_parent()
    use_one_thread()
    keep_freed_memory()
    world = join()
    for line in sys.stdin:
        job: Job = from_json(Job, Path(line.strip()).read_bytes())
        reporter = Reporter(world.rank)
        if code := reporter.report(lambda: train(job, world, reporter)):  # noqa: B023
            return code
        print(OVER, flush=True)
    leave()
    return 0


if __name__ == "__main__":
    sys.exit(main())
