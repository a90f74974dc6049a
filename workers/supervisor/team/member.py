"""A share of a run that another node leads: its ranks are started here and heard there."""

import logging
import os
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from backend.bootstrap import Backend
from backend.codec import from_plain, to_plain
from backend.errors import StageflowError
from backend.runs.dispatch.reservations import Summons
from backend.runs.events import Artifact, Chosen, Saved, Spans, write_line
from backend.runs.job import Job
from backend.runs.request.spec import RunSpec
from backend.runs.run import Run, RunError
from workers.address import interface, own_address
from workers.sandbox.limits import Limits
from workers.sandbox.room import work_folder
from workers.sandbox.sandbox import Sandbox
from workers.stop import Stop
from workers.supervisor.ranks.lines import Lines, PrintedLine
from workers.supervisor.ranks.place import Place
from workers.supervisor.ranks.ranks import Given, Ranks
from workers.supervisor.ranks.requests import request
from workers.supervisor.reporting.announced import opened
from workers.supervisor.setup.given import cores_for, gpus_for, share_of
from workers.supervisor.setup.hub import fetched
from workers.supervisor.setup.preparation import FolderInUse, prepare, rank_command, room_of
from workers.supervisor.setup.resuming import beginning, checkpoint_place
from workers.supervisor.team.connection import BadFrame, Connection

TICK = 0.1
CONNECT = 20.0
"""Seconds for the way to the leader."""

log = logging.getLogger(__name__)


class TeamMember:
    """`stop` is set when this agent must end; the leader hears of that by the closed line. A
    warning is none of a member's business: the leader has it too, saves, and ends the share."""

    def __init__(
        self,
        backend: Backend,
        summons: Summons,
        stop: Stop,
        gpus: Sequence[str],
        sandbox: Sandbox,
    ) -> None:
        self._backend, self._summons, self._stop = backend, summons, stop
        self._gpus, self._sandbox = gpus, sandbox
        self._folder = backend.settings.run_folder(summons.run_id, summons.attempt)
        self._work = work_folder(self._folder)
        self._lines = Lines()
        self._host = 0
        self._told: set[int] = set()
        self._is_over = threading.Event()

    def run(self) -> None:
        """Carry the share to its end; a leader that is gone ends it."""
        try:
            place = (self._summons.address, self._summons.port)
            self._leader = Connection.over(socket.create_connection(place, CONNECT))
        except OSError as fault:
            log.warning("run %d: no way to its leader: %s", self._summons.run_id, fault)
            return
        try:
            self._carry()
        except (OSError, StageflowError) as fault:
            log.warning("run %d: %s", self._summons.run_id, fault)
        finally:
            self._leader.close()

    def _carry(self) -> None:
        settings = self._backend.settings
        self._sandbox.require(settings.sandbox, settings.node)
        self._leader.send(node=settings.node, secret=self._summons.secret)
        head = self._leader.receive()
        if head is None or not {"place", "begin", "spec"} <= head.keys():
            return
        self._leader.tcp.settimeout(None)
        place: Place = from_plain(Place, head["place"])
        self._host = place.host
        place = replace(place, interface=interface(own_address(settings.node_address)))
        run = self._backend.runs.get(self._summons.run_id)
        run = replace(run, spec=from_plain(RunSpec, head["spec"]))  # it may go on by a fallback
        if not fetched(run.asked, settings, goes_on=lambda: not self._stop.is_set()):
            return
        job = self._begun(self._prepared(run), head["begin"])
        given = Given(gpus_for(place, self._gpus), cores_for(place, self._gpus))
        room, command, level = room_of(job, settings), rank_command(job), self._sandbox.level
        limits = Limits.of(settings, share_of(place.held, self._gpus, settings.devices))
        ranks = Ranks(room, command, place, job.world_size, self._lines, limits, level, given)
        threading.Thread(target=self._await_end, args=(ranks,), daemon=True).start()
        try:
            self._watch(ranks)
        finally:
            ranks.end()
        self._pass_on(self._lines.rest())
        self._tell_exits(ranks)

    def _prepared(self, run: Run) -> Job:
        try:
            return prepare(self._backend, run, self._folder)
        except FolderInUse as fault:  # as it will be at the next attempt: the run ends with that
            error = RunError(type(fault).__name__, str(fault), fault.advice)
            self._leader.send(breach=to_plain(RunError, error))
            raise

    def _begun(self, job: Job, begin: dict[str, int]) -> Job:
        """The job with the checkpoint that the leader sends, if it sends one."""
        if not begin["files"]:
            return job
        place = checkpoint_place(job)
        place.mkdir()
        for _ in range(begin["files"]):
            head = self._leader.receive()
            if head is None or "file" not in head:
                raise BadFrame("the leader's checkpoint ended too early")
            with (place / Path(head["file"]).name).open("wb") as target:
                self._leader.receive_file(target, head["size"])
        return beginning(job, place, begin["epoch"], begin["samples"])

    def _watch(self, ranks: Ranks) -> None:
        while not self._is_over.is_set() and not self._stop.is_set():
            self._pass_on(self._lines.take(TICK))
            self._tell_exits(ranks)
            if error := ranks.exceeded(time.monotonic()):
                self._leader.send(breach=to_plain(RunError, error))
                return

    def _await_end(self, ranks: Ranks) -> None:
        """The leader says after which microbatch to save, and when to show stacks, then that it is
        over, or is gone."""
        with suppress(OSError, StageflowError):
            while (head := self._leader.receive()) is not None:
                match head:
                    case {"epoch": int() as epoch, "microbatches": int() as microbatches}:
                        request(self._work, Chosen(0, epoch, microbatches).file)
                    case {"stacks": True}:
                        ranks.show_stacks()
                    case _:
                        break
        self._is_over.set()

    def _tell_exits(self, ranks: Ranks) -> None:
        """After the lines of a rank, which are on their way for a moment longer."""
        for rank, code in ranks.exits().items():
            if rank not in self._told:
                self._told.add(rank)
                self._leader.send(rank=rank, exit=code)

    def _pass_on(self, lines: Sequence[PrintedLine]) -> None:
        """Each line; before it the file that it announces."""
        for line in lines:
            event, text = line.event, line.text
            match event:
                case Saved(_, epoch, samples, _, path):
                    place = f"{epoch}-{samples}-best" if event.best else f"{epoch}-{samples}"
                    name = self._send(path, f"{line.rank}-{place}-{Path(path).name}")
                    text = write_line(replace(event, path=name))
                case Spans(_, _, path) | Artifact(_, path):
                    name = self._send(path, Path(path).name)
                    text = write_line(replace(event, path=name))
                case _:
                    pass
            is_event = event is not None
            self._leader.send(rank=line.rank, time=line.time, text=text, event=is_event)

    def _send(self, path: str, name: str) -> str:
        """Send a file that a rank announced, under `name`; what the leader calls it."""
        with opened(self._work, path) as file, file.path.open("rb") as data:
            self._leader.send_file(data, os.fstat(data.fileno()).st_size, file=name)
        return f"host-{self._host}-{name}"
