"""The rounds in which a pool's jobs are submitted, followed and ended."""

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import inf

from backend.bootstrap import Backend
from backend.links.link_test import LinkState, LinkTest
from backend.runs.pools.job import JobOrder, JobState, Seen
from backend.runs.pools.pool import PoolJob, is_needed, order_for
from backend.runs.pools.room import ForetoldStart, PoolRoom
from backend.runs.run import Run
from workers.pools.engine import Engine, EngineAway, OrderRefused

OBEY = 30.0
"""Seconds in which the agents of a job that nobody needs end by themselves."""
MEASURING = 600.0
"""Seconds that a job may take to measure links."""
TOLD = 300
"""Characters of what it printed, where it failed."""
FORETELL = 60.0
"""Seconds between two questions when a job would start."""

log = logging.getLogger("stageflow")


class Submitter:
    """For one pool. Nothing that a round knows is needed by the next: another process may make
    it, after any step of this one."""

    def __init__(
        self, backend: Backend, engine: Engine, pool: str, kind: str, command: Sequence[str]
    ) -> None:
        """`command`: what carries a run on a machine of a job; the run's number follows it."""
        self._pools, self._links, self._engine = backend.pools, backend.links, engine
        self._pool, self._kind, self._command = pool, kind, tuple(command)
        self._unneeded: dict[str, float] = {}
        self._starts: tuple[ForetoldStart, ...] = ()
        self._foretold = -inf

    def turn(self) -> None:
        """One round. Raises `NodeTaken` where another process submits for this pool."""
        self._pools.go_by(self._pool)
        try:
            seen, room = self._engine.look(), self._engine.room()
            self._foretell(room)
            self._pools.beat(self._pool, self._kind, replace(room, starts=self._starts))
            for test in self._links.tests.of_pool(self._pool):
                self._measure(test, seen.get(self._measuring(test)))
            for job, run in self._pools.unfinished(self._pool):
                self._follow(job, run, seen.get(job.name))
            for job, run in self._pools.begin(self._pool):
                self._submit(job, run)
        except EngineAway as fault:  # nothing follows from that for any job
            log.warning("%s", fault)
            self._pools.beat(self._pool, self._kind, None, str(fault))

    def _foretell(self, room: PoolRoom) -> None:
        """Ask once a minute when jobs of some shapes would start."""
        if time.monotonic() < self._foretold + FORETELL:
            return
        self._foretold, found = time.monotonic(), []
        for machines, devices in room.shapes():
            order = JobOrder(f"stageflow-{self._pool}-when", 0, machines, devices, ("true",))
            try:
                expected = self._engine.estimate(order)
            except OrderRefused as fault:
                log.info("no start of %d machines is foretold: %s", machines, fault)
                continue
            if expected:
                found.append(ForetoldStart(machines, devices, expected, datetime.now(UTC)))
        self._starts = tuple(found)

    def _measuring(self, test: LinkTest) -> str:
        return f"stageflow-{self._pool}-links-{test.id}"

    def _measure(self, test: LinkTest, found: Seen | None) -> None:
        """A test of links has a job as a run has one; it fails where that cannot be."""
        name, problem = self._measuring(test), ""
        if found is None and test.state is LinkState.QUEUED:
            words, devices = (*self._command, str(test.id), "--links"), test.members[0].devices
            order = JobOrder(name, 0, len(test.members), len(devices), words, MEASURING)
            try:
                log.info("link test %d: job %s", test.id, self._engine.submit(order))
            except OrderRefused as fault:
                problem = f"{fault}. {fault.advice}"
        elif found is None or found.state is JobState.GONE:
            why = found.reason if found else ""
            problem = f"its job ended: {why} {self._engine.output(name)[-TOLD:]}".strip()
        elif found.state is JobState.HELD:
            self._engine.end(name)
            problem = f"{found.reason}: {found.advice}"
        if problem:
            self._links.tests.fail(test.id, problem)

    def _follow(self, job: PoolJob, run: Run, found: Seen | None) -> None:
        if found is None and job.state is JobState.SUBMITTING and is_needed(job, run):
            self._submit(job, run)  # whoever wrote it down ended before it was in the queue
        elif found is None or found.state is JobState.GONE:
            self._unneeded.pop(job.name, None)
            why = found.reason if found is not None else ""
            self._pools.ended(job, why, self._engine.output(job.name))
        else:
            self._pools.seen(job, found)
            if not is_needed(job, run):
                self._dismiss(job, found)

    def _dismiss(self, job: PoolJob, found: Seen) -> None:
        since = self._unneeded.setdefault(job.name, time.monotonic())
        if found.state is not JobState.RUNNING or time.monotonic() - since > OBEY:
            self._engine.end(job.name)

    def _submit(self, job: PoolJob, run: Run) -> None:
        try:
            order = order_for(job, run.asked, (*self._command, str(run.id)))
            engine_id = self._engine.submit(order)
        except OrderRefused as fault:
            log.warning("run %d: %s", run.id, fault)
            self._pools.ended(job, f"{fault}. {fault.advice}")
        else:
            log.info("run %d: job %s", run.id, engine_id)
            self._pools.seen(job, Seen(engine_id, JobState.WAITING))
