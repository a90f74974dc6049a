"""This machine as a cluster: jobs are processes, and wait in a folder until there is room."""

import os
import signal
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from backend.cluster.cluster import Device
from backend.runs.pools.job import JobOrder, JobState, Seen
from backend.runs.pools.room import Machines, PoolRoom
from backend.setting_files import PREFIX
from workers.pid import Pid
from workers.pools.engine import OrderRefused
from workers.pools.local_job import KEPT, TAIL, LocalJob, Slot, jobs_in, written

KILL_WAIT = 30.0
"""Seconds between the request to end and the end by force."""


class LocalEngine:
    """`machines` with these `devices` each, which all are this one; `longest`: seconds that a job
    may take, 0 = any. `environment`: all that a job is told by variables of ours. `gpus`: what
    CUDA calls the devices; without them a job is bound to cores, one for each of its devices.

    Nothing is kept in memory: jobs go on without the process that submitted them, and are started
    and ended when somebody looks.
    """

    def __init__(
        self,
        folder: Path,
        machines: int,
        devices: Sequence[Device],
        environment: Mapping[str, str],
        longest: float = 0.0,
        gpus: Sequence[str] = (),
    ) -> None:
        self._folder, self._machines, self._devices = folder, machines, tuple(devices)
        inherited = {n: v for n, v in os.environ.items() if not n.startswith(PREFIX)}
        self._environment = inherited | dict(environment)
        self._longest, self._gpus = longest, tuple(gpus)
        self._children: list[subprocess.Popen[bytes]] = []
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def submit(self, order: JobOrder) -> str:
        self._check(order)
        known = self._jobs().get(order.name)
        if known is None or known.state is JobState.GONE:
            written(self._folder, LocalJob(order, JobState.WAITING, time.time()))
        self._turn()
        return order.name

    def look(self) -> Mapping[str, Seen]:
        return {
            name: Seen(
                name,
                job.state,
                "Resources" if job.state is JobState.WAITING else "",
                starts_at=datetime.fromtimestamp(job.started, UTC) if job.started else None,
                hosts=tuple(f"local-{slot.machine}" for slot in job.slots),
            )
            for name, job in self._turn().items()
        }

    def end(self, name: str) -> None:
        job = self._jobs().get(name)
        if job is not None:
            self._end(job)

    def room(self) -> PoolRoom:
        free = tuple(len(devices) for devices in self._free(self._jobs().values()))
        return PoolRoom((Machines(self._devices[0], len(self._devices), free),), self._longest)

    def estimate(self, order: JobOrder) -> datetime | None:
        self._check(order)
        jobs = self._jobs().values()
        waits = any(job.state is JobState.WAITING for job in jobs)
        return None if waits or self._slots(order, jobs) is None else datetime.now(UTC)

    def output(self, name: str) -> str:
        file = self._folder / name / "output"
        return file.read_bytes()[-TAIL:].decode(errors="replace") if file.is_file() else ""

    def _jobs(self) -> Mapping[str, LocalJob]:
        return jobs_in(self._folder)

    def _check(self, order: JobOrder) -> None:
        if order.nodes > self._machines or order.devices > len(self._devices):
            raise OrderRefused(
                f"{order.nodes} machines with {order.devices} devices each are more than the "
                f"{self._machines} with {len(self._devices)} that there are",
                "Ask for fewer, or plan for this pool.",
            )
        if self._longest and order.seconds > self._longest:
            raise OrderRefused(
                f"{order.seconds:g} s are more than the {self._longest:g} s that a job may take",
                "Ask for less: a run that takes longer goes on in another job.",
            )

    def _turn(self) -> Mapping[str, LocalJob]:
        """Note what has ended, end what must, start what has room: the oldest first, none before
        it. All jobs by name, as they are then."""
        self._children = [child for child in self._children if child.poll() is None]
        jobs = dict(self._jobs())
        for name, job in list(jobs.items()):
            if job.state is JobState.RUNNING:
                jobs[name] = self._followed(job)
            elif job.state is JobState.GONE and time.time() - job.ended > KEPT:
                jobs.pop(name).forget(self._folder)
        waiting = [job for job in jobs.values() if job.state is JobState.WAITING]
        for job in sorted(waiting, key=lambda job: job.submitted):
            slots = self._slots(job.order, jobs.values())
            if slots is None:
                break
            jobs[job.order.name] = self._started(job, slots)
        return jobs

    def _followed(self, job: LocalJob) -> LocalJob:
        now, limit = time.time(), job.order.seconds or self._longest
        if not job.is_alive:
            return written(self._folder, replace(job, state=JobState.GONE, ended=now))
        if job.asked and now > job.asked + KILL_WAIT:
            job.tell(signal.SIGKILL)
        elif limit and not job.asked and now > job.started + limit:
            return self._end(job)
        elif limit and not job.warned and now > job.started + limit - job.order.warning:
            job = written(self._folder, replace(job, warned=True))
            job.tell(signal.SIGUSR1)
        return job

    def _end(self, job: LocalJob) -> LocalJob:
        if job.state is JobState.WAITING:
            return written(self._folder, replace(job, state=JobState.GONE, ended=time.time()))
        if job.state is JobState.RUNNING and not job.asked:
            job = written(self._folder, replace(job, asked=time.time()))
            job.tell(signal.SIGTERM)
        return job

    @contextmanager
    def _bound(self, devices: Sequence[int]) -> Iterator[None]:
        """What is started meanwhile computes on the cores of these devices alone."""
        if self._gpus or not hasattr(os, "sched_setaffinity"):
            yield
            return
        own = os.sched_getaffinity(0)
        cores = sorted(own)
        os.sched_setaffinity(0, {cores[device % len(cores)] for device in devices})
        try:
            yield
        finally:
            os.sched_setaffinity(0, own)

    def _free(self, jobs: Collection[LocalJob]) -> list[list[int]]:
        """Of each machine, the devices that none of the jobs holds."""
        held = {
            (slot.machine, device)
            for job in jobs
            if job.state is JobState.RUNNING
            for slot in job.slots
            for device in slot.devices
        }
        devices = range(len(self._devices))
        return [[d for d in devices if (m, d) not in held] for m in range(self._machines)]

    def _slots(self, order: JobOrder, jobs: Collection[LocalJob]) -> tuple[Slot, ...] | None:
        """Devices for the job on as many machines as it needs; None where the others hold them."""
        found: list[Slot] = []
        for machine, free in enumerate(self._free(jobs)):
            if len(free) >= order.devices and len(found) < order.nodes:
                found.append(Slot(machine, tuple(free[: order.devices])))
        return tuple(found) if len(found) == order.nodes else None

    def _started(self, job: LocalJob, slots: tuple[Slot, ...]) -> LocalJob:
        processes = []
        for place, slot in enumerate(slots):
            given = {"STAGEFLOW_PLACE": str(place), "STAGEFLOW_DEVICES": str(len(slot.devices))}
            if self._gpus:
                given["CUDA_VISIBLE_DEVICES"] = ",".join(self._gpus[d] for d in slot.devices)
            variables = self._environment | given
            output_file = self._folder / job.order.name / "output"
            with output_file.open("ab") as output, self._bound(slot.devices):
                child = subprocess.Popen(
                    job.order.command,
                    env=variables,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            self._children.append(child)
            processes.append(Pid.of(child.pid))
        now = time.time()
        started = replace(
            job, state=JobState.RUNNING, started=now, slots=slots, processes=tuple(processes)
        )
        return written(self._folder, started)
