"""A rank that runs many emulated jobs one after the other: importing torch once for all."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from backend.codec import from_json
from backend.runs.job import Job
from workers.runtime.emulated.run import emulate
from workers.runtime.messages.world import join, leave
from workers.runtime.process import die_with_parent, use_one_thread
from workers.runtime.reports.reporter import Reporter


def main() -> None:
    die_with_parent()
    use_one_thread()
    world = join()
    for name in sys.argv[1:]:
        job: Job = from_json(Job, Path(name).read_bytes())
        emulate(job, world, Reporter(world.rank))
    leave()
    print("{}", flush=True)


if __name__ == "__main__":
    main()
