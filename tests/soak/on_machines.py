"""Faults of a node's own processes and means: its launcher, its descriptors, a backup meanwhile."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from backend.runs.states import RunState
from backend.storage.backup.archive import back_up
from tests.soak.fault import Curve, Figures, equal, told_once
from tests.soak.site import Site

FEW = 3
"""Descriptors that are left to an agent."""


@contextmanager
def few_descriptors(pid: int) -> Iterator[None]:
    """This process cannot open more files meanwhile than `FEW`. Raises `psutil.Error`."""
    process = psutil.Process(pid)
    before = process.rlimit(resource.RLIMIT_NOFILE)
    process.rlimit(resource.RLIMIT_NOFILE, (process.num_fds() + FEW, before[1]))
    try:
        yield
    finally:
        process.rlimit(resource.RLIMIT_NOFILE, before)


def launcher_killed(there: Site, undisturbed: Curve) -> Figures:
    """Between the claim and the start of the ranks: they count as killed, nothing of the run is
    left, and the next one is undisturbed."""
    run = there.backend.runs.submit(there.spec())
    found: list[psutil.Process] = []
    there.wait(lambda: found.extend(there.launchers()) or found)
    for process in found:
        process.kill()
    ended = there.final(run.id)
    assert ended.state is RunState.FAILED
    assert ended.error is not None
    assert ended.error.kind == "RankKilled", ended.error
    gone = there.wait(lambda: not there.living(run.id))
    equal(there, there.backend.runs.submit(there.spec()).id, undisturbed)
    return {"no process left": gone}


def descriptors_used_up(there: Site, undisturbed: Curve) -> Figures:
    """The agent cannot open more files for a while: the run goes on or ends with a reason, the next
    one is undisturbed."""
    run = there.on_its_way(there.spec())
    with few_descriptors(there.agents["a"].pid):
        seen = len(there.backend.runs.checkpoints.list(run.id))
        there.wait(
            lambda: (
                not there.backend.runs.get(run.id).state.is_live  # over, or queued again
                or len(there.backend.runs.checkpoints.list(run.id)) > seen
                or there.backend.runs.get(run.id).attempt > 1
            )
        )
    ended = there.final(run.id)
    assert ended.state is RunState.SUCCEEDED or ended.error is not None
    if ended.state is RunState.SUCCEEDED:
        equal(there, run.id, undisturbed)
    equal(there, there.backend.runs.submit(there.spec()).id, undisturbed)
    return {}


def backed_up(there: Site, undisturbed: Curve) -> Figures:
    """While a run reports: neither disturbs the other."""
    run = there.on_its_way(there.spec())
    target = there.settings.home / f"backup-{run.id}.zip"
    manifest = back_up(there.settings, target, "soak")
    assert manifest.tables
    target.unlink()
    equal(there, run.id, undisturbed)
    told_once(there, run.id)
    return {}
