"""Pools, and the rules by which the runs that wait for them become jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

from backend.runs.dispatch.placement import world_size
from backend.runs.pools.job import WARNING, JobOrder, JobState
from backend.runs.pools.room import ForetoldStart, PoolRoom
from backend.runs.request.spec import PoolSpec, RunSpec, TrainSpec
from backend.runs.run import Run

AHEAD = 4
"""Jobs of a pool that wait at once: of more, the order would be the cluster's and not ours; of
none, their age in the cluster's queue would not grow."""
TRIES = 3
"""Jobs for the same attempt of a run that may end before their agents have begun it."""
RETRY = timedelta(seconds=20)


@dataclass(frozen=True, slots=True)
class Pool:
    """A cluster whose jobs carry runs; `kind`: "local", "slurm", "kubernetes". `alive`: who submits
    its jobs gave a sign of life no longer ago than a lease. `fault`: why the cluster could not be
    asked the last time, for people."""

    name: str
    kind: str
    room: PoolRoom
    alive: bool
    heartbeat_at: datetime
    fault: str = ""


@dataclass(frozen=True, slots=True)
class PoolJob:
    """The `number`th job of a run, which shall carry that `attempt` of it; the other fields are as
    in `Seen`. `output`: the end of what it printed, where it ended before that attempt began."""

    run_id: int
    number: int
    attempt: int
    pool: str
    state: JobState
    submitted_at: datetime
    engine_id: str = ""
    reason: str = ""
    advice: str = ""
    starts_at: datetime | None = None
    hosts: tuple[str, ...] = ()
    ended_at: datetime | None = None
    output: str = ""

    @property
    def name(self) -> str:
        return f"stageflow-{self.pool}-{self.run_id}-{self.number}"

    @property
    def is_over(self) -> bool:
        return self.state is JobState.GONE


def is_needed(job: PoolJob, run: Run) -> bool:
    """Whether the attempt that the job is for may still begin, or goes on."""
    if run.state.is_final:
        return False
    return run.attempt < job.attempt or (run.attempt == job.attempt and run.state.is_live)


def tries(jobs: Sequence[PoolJob], attempt: int) -> int:
    """How many jobs for that attempt ended without it."""
    return sum(job.is_over and job.attempt == attempt for job in jobs)


def next_ones(
    queue: Sequence[Run], jobs: Mapping[int, Sequence[PoolJob]], now: datetime
) -> list[Run]:
    """Of the runs that wait for a pool, in their order, those that get a job now; `jobs` by run,
    all of the pool that are not over and all of these runs."""
    waiting = sum(
        job.state in (JobState.SUBMITTING, JobState.WAITING, JobState.HELD)
        for each in jobs.values()
        for job in each
    )
    found = []
    for run in queue:
        mine = jobs.get(run.id, ())
        if any(not job.is_over and is_needed(job, run) for job in mine):
            continue
        ends = [job.ended_at for job in mine if job.attempt > run.attempt and job.ended_at]
        if waiting < AHEAD and (not ends or now - max(ends) > RETRY):
            found.append(run)
            waiting += 1
    return found


def order_for(job: PoolJob, spec: RunSpec, command: Sequence[str]) -> JobOrder:
    """The job as a cluster is asked for it. The spec has a pool. A short job is warned when half
    of its time is over: otherwise it would be at its beginning, and learn nothing."""
    asked = spec.pool
    assert asked is not None
    devices = asked.devices or fewest_devices(spec)
    return JobOrder(
        job.name,
        job.run_id,
        asked.nodes,
        devices,
        tuple(command),
        asked.seconds,
        min(WARNING, asked.seconds / 2) if asked.seconds else WARNING,
    )


def foretold(pool: Pool, spec: RunSpec) -> ForetoldStart | None:
    """When the first job of a run that waits for this pool would start; None where nobody knows."""
    asked = spec.pool or PoolSpec(pool.name)
    return pool.room.start_of(asked.nodes, asked.devices or fewest_devices(spec))


def fewest_devices(spec: RunSpec) -> int:
    """Those of each machine that the run needs at least, where all have as many."""
    nodes = spec.pool.nodes if spec.pool else 1
    if not isinstance(spec, TrainSpec):
        return 1
    partition = spec.plan.partition
    used = [device for stage in partition.stages for device in stage.devices]
    return ceil((max(used) + 1) / nodes) if nodes > 1 else world_size(spec)
