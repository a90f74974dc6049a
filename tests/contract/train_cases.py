"""A rank that runs many jobs one after the other: importing torch once for all of them."""

import sys
from pathlib import Path

import torch

from backend.codec import from_json
from backend.runs.job import Job
from workers.runtime.messages.world import World, join, leave
from workers.runtime.process import die_with_parent, use_one_thread
from workers.runtime.reports.reporter import Reporter
from workers.runtime.run import train
from workers.runtime.state import rounding


def run(job_file: Path, world: World) -> int:
    job: Job = from_json(Job, job_file.read_bytes())
    reporter = Reporter(world.rank)
    reporter.log(f"case {job.name}")
    return reporter.report(lambda: train(job, world, reporter))


def main() -> int:
    """The exit code of the first job that fails: its ranks are not at one any more."""
    rounding.FULL = torch.float64  # so that updates round as those of the reference do
    die_with_parent()
    use_one_thread()
    world = join()
    for name in sys.argv[1:]:
        if code := run(Path(name), world):
            return code
    leave()
    return 0
