"""One attempt at a run, from the claim to its end: the only writer to the database."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress

from backend.bootstrap import Backend
from backend.runs.attempt import Attempt
from backend.runs.events import Chosen
from backend.runs.fence import LeaseLost
from backend.runs.job import Job
from backend.runs.states import RunState
from backend.sandbox_level import SandboxLevel
from backend.storage.errors import DatabaseUnreachable
from workers.address import own_address
from workers.sandbox.cell import SandboxFailed
from workers.sandbox.guard import Guard
from workers.sandbox.limits import Limits
from workers.sandbox.room import work_folder
from workers.sandbox.sandbox import Sandbox, detect
from workers.supervisor import disk
from workers.supervisor.conclusion import conclude
from workers.supervisor.ending import (
    CANCELLED,
    CUT_OFF,
    HELD_UP,
    STOPPED,
    SUCCEEDED,
    Ending,
    failed,
)
from workers.supervisor.hub import fetched
from workers.supervisor.journal import Journal
from workers.supervisor.lease_watch import LeaseWatch, renewing
from workers.supervisor.leftover import spool_folder
from workers.supervisor.parting import Parting
from workers.supervisor.place import LOOPBACK, Place
from workers.supervisor.preparation import gpus_for, prepare, rank_command, sharing
from workers.supervisor.ranks import Ranks
from workers.supervisor.rendezvous import Rendezvous
from workers.supervisor.resuming import resumed
from workers.supervisor.spool import Spool
from workers.supervisor.team import Members
from workers.supervisor.verdict import SILENCE, Tally

TICK = 0.1
FLUSH = 0.4
"""Seconds between writes, and between looks at the cancel flag."""

Command = Callable[[Job], Sequence[str]]
log = logging.getLogger(__name__)


class Supervision:
    """Starts the ranks, watches them, writes what they say, ends them.

    `stop` is set when the agent itself must end; `silence` in seconds (see `verdict`). The
    sandbox is the best that this node has where none is given.
    """

    def __init__(
        self,
        backend: Backend,
        attempt: Attempt,
        stop: threading.Event,
        num_gpus: int = 0,
        command: Command = rank_command,
        silence: float = SILENCE,
        sandbox: Sandbox | None = None,
    ) -> None:
        self._backend = backend
        self._attempt = attempt
        self._stop = stop
        self._num_gpus = num_gpus
        self._command = command
        self._silence = silence
        self._folder = backend.settings.run_folder(attempt.run.id, attempt.number)
        spool = Spool(spool_folder(backend.settings), attempt.fence)
        self._journal = Journal(attempt, work_folder(self._folder), spool)
        self._sandbox = sandbox or detect(backend.settings)
        self._limits = Limits.of(backend.settings)
        self._parting = Parting(work_folder(self._folder))
        self._members: Members | None = None
        self._renewed = self._written = time.monotonic()
        self._answers = True  # the database, at the last time that it was written to or asked
        self._watch = LeaseWatch(backend.settings.lease, lambda: None)

    def run(self) -> None:
        """Carry the attempt to its end, whatever happens on the way."""
        try:
            ending = self._carried()
            disk.let_go(self._folder)
            self._miss()
            is_told = self._concluded(ending)
        except LeaseLost as fault:
            is_told = True  # nobody wants to hear the rest
            log.warning("run %d: %s", self._attempt.run.id, fault)
        if is_told:
            self._journal.close()

    def _miss(self) -> None:
        """Let no attempt count on a node that went away before it speaks again."""
        for node in sorted(self._members.lost) if self._members else ():
            with suppress(DatabaseUnreachable):
                self._backend.nodes.lost(node)

    def _concluded(self, ending: Ending) -> bool:
        with self._renewing():
            return conclude(self._attempt, self._journal, ending, self._stop)

    def _carried(self) -> Ending:
        try:
            shares = self._backend.dispatch.shares(self._attempt.run.spec)
            address = own_address(self._backend.settings.node_address) if shares else LOOPBACK
            with Rendezvous(address) as meeting:
                if not shares:
                    return self._ranks_watched(meeting.port)
                work = work_folder(self._folder)
                self._members = Members(shares, address, meeting.port, work)
                with self._members:
                    return self._ranks_watched(meeting.port)
        except LeaseLost:
            raise
        except Exception as fault:
            log.exception("run %d failed", self._attempt.run.id)
            return failed(fault, self._folder)

    def _ranks_watched(self, port: int) -> Ending:
        level = self._isolated()
        run, settings = self._attempt.run, self._backend.settings
        if not fetched(run.spec, settings, goes_on=lambda: not self._is_cancelled()):
            return CANCELLED
        with self._renewing():
            job = prepare(self._backend, self._attempt.run, self._folder)
            job = resumed(self._attempt, job, self._say)
        place = Place.alone(job.world_size, port)
        if self._members is not None:
            if not self._members.gather(self._summon, goes_on=lambda: not self._is_cancelled()):
                return CANCELLED
            place = self._members.place(settings.node)
        disk.hold_back(self._folder)
        self._say(f"starting {len(place.ranks)} rank(s) on {settings.node}")
        num_gpus = 0 if job.emulation else self._num_gpus
        for warning in () if job.emulation else sharing(len(place.ranks), num_gpus):
            self._say(warning)
        num_gpus = gpus_for(len(place.ranks), num_gpus)
        self._renew()
        ranks = Ranks(job, self._command(job), place, settings.home, self._limits, level, num_gpus)
        if self._members is not None:
            self._members.start(ranks.lines, job)
        stall = self._backend.settings.stall
        tally = Tally(job.world_size, time.monotonic(), self._silence, stall=stall)
        guard = Guard(self._limits, ranks.outermost, work_folder(self._folder))
        try:
            with LeaseWatch(self._backend.settings.lease, ranks.kill) as self._watch:
                self._watch.renewed(self._renewed)
                ending = self._watched(ranks, tally, guard)
        finally:
            if self._members is not None:
                self._members.part()
            stubborn = ranks.end()
            if self._members is not None:
                self._members.end()
        if stubborn:
            self._say(f"processes {stubborn} could not be ended")
        return self._heard_out(ranks, tally, ending)

    def _isolated(self) -> SandboxLevel:
        """The sandbox's level, once it is known to be strong enough and kept with the run."""
        settings = self._backend.settings
        self._sandbox.require(settings.sandbox, settings.node)
        self._attempt.isolated(self._sandbox.level)
        reason = f" ({self._sandbox.reason})" if self._sandbox.reason else ""
        self._say(f"sandbox: {self._sandbox.level}{reason}")
        return self._sandbox.level

    def _watched(self, ranks: Ranks, tally: Tally, guard: Guard) -> Ending:
        """Look after the ranks until there is an end to report."""
        while True:
            try:
                if self._journal.is_behind:
                    time.sleep(TICK)
                else:
                    self._listen(ranks, tally)
            except SandboxFailed:
                if not self._watch.is_over:  # which ends ranks that are only being started, too
                    raise
            ending = self._ending(tally, guard, time.monotonic())
            if ending is not None:
                return ending

    def _listen(self, ranks: Ranks, tally: Tally) -> None:
        heard = ranks.lines.take(TICK)
        now = time.monotonic()
        for line in heard:
            event = self._journal.hear(line)
            tally.hear(line.rank, event, now)
            if isinstance(event, Chosen) and self._members is not None:
                self._members.choose(event)
        tally.exited(ranks.exits() | (self._members.exits() if self._members else {}), now)

    def _summon(self, address: str, meeting_port: int, secret: str) -> None:
        run = self._attempt.run
        self._backend.dispatch.summon(run, self._attempt, address, meeting_port, secret)

    def _ending(self, tally: Tally, guard: Guard, now: float) -> Ending | None:
        if self._watch.is_over:
            return HELD_UP if self._answers else CUT_OFF
        if tally.all_finished:
            return SUCCEEDED
        tally.breach = guard.error(now) or (self._members.error if self._members else None)
        if error := tally.error(now):
            return Ending(RunState.FAILED, error)
        is_due = now - self._written >= FLUSH or self._parting.wish is not None
        if is_due and self._written_and_cancelled(tally, now):
            self._part(CANCELLED, tally)
        if self._stop.is_set():
            self._part(STOPPED, tally)
        is_over = self._parting.is_over(self._journal.results.checkpoints)
        return self._parting.wish if is_over else None

    def _part(self, wish: Ending, tally: Tally) -> None:
        """End as somebody wishes, with a last checkpoint where training has begun."""
        can_save = tally.all_started and bool(self._journal.results.losses)
        self._parting.ask(wish, can_save, self._journal.results.checkpoints)

    def _written_and_cancelled(self, tally: Tally, now: float) -> bool:
        """Write what there is, renew the lease when it is time; was a cancel asked for?"""
        self._written = now
        try:
            if tally.all_started:
                self._journal.begin()
            with self._renewing():
                self._journal.flush(FLUSH)
            cancelled = self._renew() if self._is_due(now) else self._wants_end()
        except DatabaseUnreachable:
            self._answers = False
            return False
        self._answers = True
        return cancelled

    def _is_cancelled(self) -> bool:
        """Renew the lease when it is time, before there are ranks; was a cancel asked for?"""
        cancelled = self._is_due(time.monotonic()) and self._renew()
        return cancelled or self._stop.is_set()

    def _is_due(self, now: float) -> bool:
        """Is it time to renew the lease?"""
        return now - self._renewed >= self._backend.settings.heartbeat

    def _wants_end(self) -> bool:
        """Does somebody want the run cancelled?"""
        return self._backend.runs.get(self._attempt.run.id).cancel_requested

    def _renew(self) -> bool:
        """Renew the lease; was a cancel asked for?"""
        now = time.monotonic()
        cancelled = self._attempt.beat()
        self._renewed = now
        self._watch.renewed(now)
        return cancelled

    def _renewing(self) -> AbstractContextManager[None]:
        return renewing(self._renew, self._backend.settings.heartbeat)

    def _heard_out(self, ranks: Ranks, tally: Tally, ending: Ending) -> Ending:
        """Hear the last lines of the ended ranks, which may tell the cause better."""
        now = time.monotonic()
        for line in ranks.lines.rest():
            tally.hear(line.rank, self._journal.hear(line), now)
        self._journal.results.epochs = tally.epochs
        if ending.state is not RunState.FAILED or ending in (STOPPED, CUT_OFF, HELD_UP):
            return ending
        if tally.all_finished:
            return SUCCEEDED
        cause = tally.cause() or ending.error
        return Ending(RunState.FAILED, self._limits.explained(cause) if cause else None)

    def _say(self, text: str) -> None:
        self._journal.log(None, time.time(), text)
