"""Pools: who submits jobs for a cluster, and which runs get one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from backend.notifications.notifier import Notifier
from backend.runs.pools.job import JobState, Seen
from backend.runs.pools.pool import TRIES, Pool, PoolJob, is_needed, next_ones, tries
from backend.runs.pools.room import PoolRoom
from backend.runs.run import Run, RunError
from backend.runs.states import RunState
from backend.services.runs.line import in_line
from backend.services.runs.stores import Stores


@dataclass(frozen=True)
class PoolService:
    """`lease` in seconds; `place` tells this process from all others."""

    _stores: Stores
    _notifier: Notifier
    _lease: float
    _place: str

    def go_by(self, pool: str) -> None:
        """Be the one who submits for the pool, for a lease. Raises `NodeTaken` where somebody
        else is."""
        self._stores.leases.hold(
            f"pool {pool}",
            self._place,
            self._lease,
            f"jobs for the pool {pool} are submitted by the process of",
            "Choose another --name, or stop that one",
        )

    def leave(self, pool: str) -> None:
        """Nobody need wait for the lease."""
        self._stores.leases.drop(f"pool {pool}", self._place)

    def beat(self, pool: str, kind: str, room: PoolRoom | None, fault: str = "") -> None:
        """A sign of life, with what the cluster has; see `SqlPools.beat`."""
        self._stores.pools.beat(pool, kind, room, fault)

    def list(self) -> Sequence[Pool]:
        """By name."""
        return self._stores.pools.list()

    def get(self, name: str) -> Pool:
        """Raises `NotFound`, which names those that there are."""
        return self._stores.pools.get(name)

    def jobs(self, run_ids: Sequence[int]) -> Mapping[int, Sequence[PoolJob]]:
        """Of each of these runs, the first one first."""
        return of_each(self._stores.jobs.of_runs(run_ids))

    def counts(self) -> Mapping[str, Mapping[JobState, int]]:
        """By pool, how many jobs there are in each state that some have, but for those that are
        over."""
        return self._stores.jobs.counts()

    def unfinished(self, pool: str) -> Sequence[tuple[PoolJob, Run]]:
        """The jobs that are not known to be over, each with its run."""
        jobs = self._stores.jobs.of_pool(pool)
        runs = self._stores.runs.several(sorted({job.run_id for job in jobs}))
        by_id = {run.id: run for run in runs}
        return [(job, by_id[job.run_id]) for job in jobs]

    def begin(self, pool: str) -> Sequence[tuple[PoolJob, Run]]:
        """Write down the jobs that are to be submitted now, in the order of fairness."""
        line = in_line(self._stores)
        queue = [run for run in line.pooled if run.spec.pool and run.spec.pool.name == pool]
        jobs = dict(self.jobs([run.id for run in queue]))
        for job in self._stores.jobs.of_pool(pool):
            if job.run_id not in jobs:
                jobs[job.run_id] = [job]
        chosen = next_ones(queue, jobs, datetime.now(UTC))
        return [(self._stores.jobs.add(run.id, run.attempt + 1, pool), run) for run in chosen]

    def seen(self, job: PoolJob, seen: Seen) -> None:
        """What the cluster says of a job; nothing is written where it says nothing new."""
        known = (job.engine_id, job.state, job.reason, job.advice, job.starts_at, job.hosts)
        told = (seen.engine_id, seen.state, seen.reason, seen.advice, seen.starts_at, seen.hosts)
        if known != told:
            self._stores.jobs.seen(job, seen)

    def ended(self, job: PoolJob, why: str = "", output: str = "") -> None:
        """The job is gone. Where that happened before its attempt began several times, the run
        fails with what the last one printed."""
        run = self._stores.runs.get(job.run_id)
        unbegun = run.state is RunState.QUEUED and is_needed(job, run)
        self._stores.jobs.ended(job, why, output if unbegun else "")
        if unbegun and tries(self._stores.jobs.of_runs([run.id]), job.attempt) >= TRIES:
            self._fail(job, why, output)

    def _fail(self, job: PoolJob, why: str, output: str) -> None:
        said = f": {why}" if why else " before its agents had begun the run"
        error = RunError(
            "JobFailed",
            f"{TRIES} jobs of the pool {job.pool} ended{said}",
            "Read the job's output, correct the cause, and launch the run again.",
            output,
        )
        if self._stores.runs.fail_queued(job.run_id, error):
            self._notifier.notify(self._stores.runs.get(job.run_id))


def of_each(jobs: Sequence[PoolJob]) -> Mapping[int, Sequence[PoolJob]]:
    """The jobs of each run, in the order in which they are given."""
    found: dict[int, list[PoolJob]] = {}
    for job in jobs:
        found.setdefault(job.run_id, []).append(job)
    return found


def why_pooled(run: Run, pool: Pool | None, jobs: Sequence[PoolJob]) -> str:
    """Why a queued run that waits for a pool does not start yet, for people."""
    name = run.spec.pool.name if run.spec.pool else ""
    if pool is None or not pool.alive:
        return (
            f"No process submits jobs for the pool {name} at the moment. Start it again where it "
            "ran: `stageflow pool`. Running jobs continue."
        )
    open_ones = [job for job in jobs if not job.is_over and is_needed(job, run)]
    if not open_ones:
        fault = f" ({pool.fault})" if pool.fault else ""
        before = f" The last one ended: {jobs[-1].reason}." if jobs and jobs[-1].reason else ""
        return f"It waits until the pool {name} submits its job{fault}.{before}"
    job = open_ones[-1]
    if job.state is JobState.RUNNING:
        return f"Its job {job.engine_id} starts on {', '.join(job.hosts) or name}."
    if job.state is JobState.HELD or job.advice:
        return f"Its job {job.engine_id} is held in {name} ({job.reason}): {job.advice}"
    if job.state is JobState.SUBMITTING:
        return f"Its job is being submitted to {name}."
    start = (
        f"; {name} expects to start it on {job.starts_at:%d %b at %H:%M} UTC"
        if job.starts_at
        else ""
    )
    return f"Its job {job.engine_id} waits in {name}: {job.reason or 'for its turn'}{start}."
