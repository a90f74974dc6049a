"""One attempt at a run, from the claim to its end: the only writer to the database.

What is to be done next, `state.step` says; this performs it.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial

from backend.bootstrap import Backend
from backend.runs.attempts.fence import LeaseLost
from backend.runs.job import Job
from backend.sandbox_level import SandboxLevel
from backend.services.runs.attempt import Attempt
from backend.storage.errors import DatabaseUnreachable
from backend.units import count_text
from workers.address import LOOPBACK, own_address
from workers.sandbox.cell import SandboxFailed
from workers.sandbox.limits import Limits
from workers.sandbox.room import work_folder
from workers.sandbox.sandbox import Sandbox, detect
from workers.stop import Stop
from workers.supervisor.lease import Lease
from workers.supervisor.ranks.lines import Lines, PrintedLine
from workers.supervisor.ranks.ranks import Given, Ranks
from workers.supervisor.ranks.rendezvous import rendezvous
from workers.supervisor.ranks.requests import SAVE_NOW, request
from workers.supervisor.reporting import ballast
from workers.supervisor.reporting.conclusion import conclude
from workers.supervisor.reporting.event_writer import EventWriter
from workers.supervisor.reporting.faults import failed
from workers.supervisor.setup.given import cores_for, gpus_for, share_of, sharing
from workers.supervisor.setup.hub import fetched
from workers.supervisor.setup.preparation import prepare, rank_command, room_of
from workers.supervisor.setup.resuming import resumed
from workers.supervisor.spool.spool import Spool
from workers.supervisor.state.ending import CANCELLED, OUTGROWN, Ending, asked_of_agent
from workers.supervisor.state.events import (
    AttemptEvent,
    Interrupted,
    Launched,
    Observed,
    RanksEnded,
    Written,
)
from workers.supervisor.state.instructions import Do, Instruction, PassOn, Write
from workers.supervisor.state.rank_states import SILENCE, RankStates, Told
from workers.supervisor.state.step import FLUSH, AttemptState, step
from workers.supervisor.team.leader import Team

TICK = 0.1
"""Seconds that a `Watch` waits for a line."""

Command = Callable[[Job], Sequence[str]]
log = logging.getLogger(__name__)


class Supervision:
    """Starts the ranks, watches them, writes what they say, ends them.

    `stop`: when the agent itself must end; `silence` in seconds (see `RankStates`). The
    sandbox is the best that this node has where none is given.
    """

    def __init__(
        self,
        backend: Backend,
        attempt: Attempt,
        stop: Stop,
        gpus: Sequence[str] = (),
        command: Command = rank_command,
        silence: float = SILENCE,
        sandbox: Sandbox | None = None,
    ) -> None:
        self._backend = backend
        self._attempt = attempt
        self._run = attempt.run
        self._stacks_asked = attempt.run.stacks_asked
        self._stop = stop
        self._gpus = gpus
        self._command = command
        self._silence = silence
        self._sandbox = sandbox or detect(backend.settings)
        share = share_of(attempt.shares[0].held, gpus, backend.settings.devices)
        self._limits = Limits.of(backend.settings, share)
        self._folder = backend.settings.run_folder(attempt.run.id, attempt.number)
        self._work = work_folder(self._folder)
        spool = Spool.of(backend.settings.spool_folder, attempt.fence)
        self._writer = EventWriter(attempt, self._work, spool, self._limits)
        self._lease = Lease(attempt, backend.settings)
        self._lines = Lines()
        self._started = ExitStack()
        """What was started for the attempt and is ended with it."""

    def run(self) -> None:
        """Carry the attempt to its end, whatever happens on the way."""
        with self._started:
            state = self._final_state()
        try:
            is_told = state.ending is None or self._concluded(state.ending, state.by_ranks)
        except LeaseLost as fault:
            is_told = True  # nobody wants to hear the rest
            log.warning("run %d: %s", self._run.id, fault)
        if is_told:
            self._writer.close()

    def _final_state(self) -> AttemptState:
        """Perform what `step` says until there is nothing left to do."""
        state, todo = AttemptState(), deque[Instruction]([Do.LAUNCH])
        while todo:
            event = self._performed(todo.popleft())
            if isinstance(event, Interrupted):
                todo.clear()
            if event is not None:
                state, more = step(state, event)
                todo.extend(more)
        return state

    def _performed(self, instruction: Instruction) -> AttemptEvent | None:
        try:
            return self._perform(instruction)
        except LeaseLost as fault:
            log.warning("run %d: %s", self._run.id, fault)
            return Interrupted(None)
        except Exception as fault:
            log.exception("run %d failed", self._run.id)
            return Interrupted(failed(fault, self._folder))

    def _perform(self, instruction: Instruction) -> AttemptEvent | None:
        match instruction:
            case Do.LAUNCH:
                return self._launched()
            case Do.WATCH:
                return self._observed()
            case Write(is_running):
                return self._written(is_running)
            case Do.END_RANKS:
                self._started.close()
                return RanksEnded(time.monotonic(), self._told(self._lines.rest()))
            case Do.REQUEST_CHECKPOINT:
                request(self._work, SAVE_NOW)
            case Do.SHOW_STACKS:
                self._writer.say("the stacks of all ranks were asked for: they follow")
                self._ranks.show_stacks()
                self._team.show_stacks()
            case PassOn(chosen):
                self._team.choose(chosen)
        return None

    def _launched(self) -> AttemptEvent:
        """Start the ranks of every host."""
        settings = self._backend.settings
        self._make_team()
        level = self._lease.persistently(self._isolated)
        if not fetched(self._run.asked, settings, self._goes_on):
            return Interrupted(self._asked())
        job = self._lease.persistently(self._prepared)
        summon = partial(self._backend.dispatch.summon, self._attempt)
        if not (self._team.gather(summon, self._goes_on) and self._goes_on()):
            return Interrupted(self._asked())
        self._start(job, level)
        now = time.monotonic()
        return Launched(RankStates(job.world_size, now, self._silence, settings.stall))

    def _prepared(self) -> Job:
        """The run's folder, filled anew each time."""
        with self._lease.renewing():
            job = prepare(self._backend, self._run, self._folder)
            return resumed(self._attempt, job, self._writer.say)

    def _make_team(self) -> None:
        """Ranks of one host alone meet where no other host can reach them."""
        settings, shares = self._backend.settings, self._attempt.shares
        address = own_address(settings.node_address) if len(shares) > 1 else LOOPBACK
        port = self._started.enter_context(rendezvous(address))
        self._team = Team(shares, address, port, self._work)
        self._started.callback(self._team.end)
        self._started.callback(self._report_lost)

    def _start(self, job: Job, level: SandboxLevel) -> None:
        settings, place = self._backend.settings, self._team.place(self._backend.settings.node)
        num_ranks = len(place.ranks)
        available = () if job.emulation else self._gpus
        ballast.hold_back(self._folder)
        held = f"device{'s' * (len(place.held) != 1)} {', '.join(map(str, place.held))}"
        ranks = count_text(num_ranks, "rank")
        self._writer.say(f"starting {ranks} on {settings.node}, {held}")
        for warning in () if job.emulation else sharing(place, available):
            self._writer.say(warning)
        self._lease.persistently(self._lease.renew)
        spent = self._lease.persistently(lambda: self._attempt.spent)
        self._limits = replace(self._limits, spent=spent)
        room, command, lines = room_of(job, settings), self._command(job), self._lines
        world = job.world_size
        given = Given(gpus_for(place, available), cores_for(place, self._gpus))
        self._ranks = Ranks(room, command, place, world, lines, self._limits, level, given)
        self._started.callback(self._end_ranks)
        self._started.callback(self._team.stop)
        self._team.start(self._lines, job)
        self._started.enter_context(self._lease.watched(self._ranks.kill))

    def _isolated(self) -> SandboxLevel:
        """The sandbox's level, once it is known to be strong enough and kept with the run."""
        settings = self._backend.settings
        self._sandbox.require(settings.sandbox, settings.node)
        self._attempt.isolated(self._sandbox.level)
        reason = f" ({self._sandbox.reason})" if self._sandbox.reason else ""
        self._writer.say(f"sandbox: {self._sandbox.level}{reason}")
        return self._sandbox.level

    def _observed(self) -> Observed:
        lines: tuple[Told, ...] = ()
        exits: dict[int, int] = {}
        if self._writer.is_behind:
            time.sleep(TICK)
        else:
            lines, exits = self._told(self._lines.take(TICK)), self._exits()
        now = time.monotonic()
        limit = self._ranks.exceeded(now) or self._team.error
        stop, left = self._stop.is_set(), self._stop.seconds_left
        return Observed(now, lines, exits, limit, self._lease.has_lapsed, stop, left)

    def _told(self, lines: Sequence[PrintedLine]) -> tuple[Told, ...]:
        return tuple((line.rank, self._writer.hear(line)) for line in lines)

    def _exits(self) -> dict[int, int]:
        try:
            return self._ranks.exits() | self._team.exits()
        except SandboxFailed:
            if self._lease.has_lapsed:  # which ends ranks that are only being started, too
                return {}
            raise

    def _written(self, is_running: bool) -> Written | Interrupted:
        before, stacks_before = self._writer.results.checkpoints, self._stacks_asked
        try:
            if is_running:
                self._writer.begin()
            with self._lease.renewing():
                self._writer.flush(FLUSH)
            if self._lease.is_due:
                cancelled = self._lease.renew()
            else:
                run = self._backend.runs.get(self._run.id)
                cancelled, self._stacks_asked = run.cancel_requested, run.stacks_asked
            num = self._writer.results.checkpoints
            if num > before and not cancelled and self._attempt.is_outgrown():
                return Interrupted(OUTGROWN)
        except DatabaseUnreachable:
            return Written(time.monotonic(), answered=False)
        asked = self._stacks_asked > stacks_before
        return Written(time.monotonic(), True, cancelled, num, asked)

    def _concluded(self, ending: Ending, by_ranks: bool) -> bool:
        """Is the end in the database?"""
        ballast.let_go_of_half(self._folder)
        if by_ranks and ending.error:
            ending = replace(ending, error=self._limits.explained(ending.error))
        try:
            with self._lease.renewing():
                return conclude(self._attempt, self._writer, self._folder, ending, self._stop)
        finally:
            ballast.let_go(self._folder)

    def _goes_on(self) -> bool:
        """Before there are ranks: renew the lease when it is time; shall they be started?"""
        cancelled = self._lease.is_due and self._lease.persistently(self._lease.renew)
        return not cancelled and not self._stop.is_near

    def _asked(self) -> Ending:
        """Who does not let it go on before there are ranks: the agent's own end, else a person."""
        return asked_of_agent(self._stop.is_set(), self._stop.seconds_left, False) or CANCELLED

    def _end_ranks(self) -> None:
        if stubborn := self._ranks.end():
            self._writer.say(f"processes {stubborn} could not be ended")

    def _report_lost(self) -> None:
        """Let no attempt count on a node that went away before it speaks again."""
        for node in sorted(self._team.lost):
            with suppress(DatabaseUnreachable):
                self._backend.nodes.lost(node)
