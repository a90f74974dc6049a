"""A share of a run that another node leads: its ranks are started here and heard there."""

import logging
import os
import socket
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from backend.bootstrap import Backend
from backend.codec import from_plain, to_plain
from backend.errors import StageflowError
from backend.runs.events import Artifact, Chosen, Saved, Spans, read_line, write_line
from backend.runs.job import Job
from backend.runs.reservations import Summons
from backend.runs.run import RunError
from workers.address import interface, own_address
from workers.sandbox.guard import Guard
from workers.sandbox.limits import Limits
from workers.sandbox.room import work_folder
from workers.sandbox.sandbox import Sandbox
from workers.supervisor.announced import opened
from workers.supervisor.frames import BadFrame, Wire
from workers.supervisor.hub import fetched
from workers.supervisor.lines import Heard
from workers.supervisor.parting import mark
from workers.supervisor.place import Place
from workers.supervisor.preparation import gpus_for, prepare, rank_command
from workers.supervisor.ranks import Ranks
from workers.supervisor.resuming import beginning, checkpoint_place

TICK = 0.1
CONNECT = 20.0
"""Seconds for the way to the leader."""

log = logging.getLogger(__name__)


class Membership:
    """`stop` is set when this agent must end; the leader hears of that by the closed line."""

    def __init__(
        self,
        backend: Backend,
        summons: Summons,
        stop: threading.Event,
        num_gpus: int,
        sandbox: Sandbox,
    ) -> None:
        self._backend, self._summons, self._stop = backend, summons, stop
        self._num_gpus, self._sandbox = num_gpus, sandbox
        self._limits = Limits.of(backend.settings)
        self._folder = backend.settings.run_folder(summons.run_id, summons.attempt)
        self._host = 0
        self._told: set[int] = set()
        self._is_over = threading.Event()

    def run(self) -> None:
        """Carry the share to its end; a leader that is gone ends it."""
        try:
            place = (self._summons.address, self._summons.port)
            wire = Wire.over(socket.create_connection(place, CONNECT))
        except OSError as fault:
            log.warning("run %d: no way to its leader: %s", self._summons.run_id, fault)
            return
        try:
            self._carried(wire)
        except (OSError, StageflowError) as fault:
            log.warning("run %d: %s", self._summons.run_id, fault)
        finally:
            wire.close()

    def _carried(self, wire: Wire) -> None:
        settings = self._backend.settings
        self._sandbox.require(settings.sandbox, settings.node)
        wire.say(node=settings.node, secret=self._summons.secret)
        head = wire.hear()
        if head is None or not {"place", "begin"} <= head.keys():
            return
        wire.connection.settimeout(None)
        place: Place = from_plain(Place, head["place"])
        self._host = place.host
        place = replace(place, interface=interface(own_address(settings.node_address)))
        run = self._backend.runs.get(self._summons.run_id)
        if not fetched(run.spec, settings, goes_on=lambda: not self._stop.is_set()):
            return
        job = self._begun(prepare(self._backend, run, self._folder), head["begin"], wire)
        ranks = Ranks(
            job,
            rank_command(job),
            place,
            settings.home,
            self._limits,
            self._sandbox.level,
            gpus_for(len(place.ranks), self._num_gpus),
        )
        threading.Thread(target=self._await_end, args=(wire,), daemon=True).start()
        guard = Guard(self._limits, ranks.outermost, work_folder(self._folder))
        try:
            self._watched(wire, ranks, guard)
        finally:
            ranks.end()
        for heard in ranks.lines.rest():
            self._pass_on(wire, heard)
        self._tell_exits(wire, ranks)

    def _begun(self, job: Job, begin: dict[str, int], wire: Wire) -> Job:
        """The job with the checkpoint that the leader sends, if it sends one."""
        if not begin["files"]:
            return job
        place = checkpoint_place(job)
        place.mkdir()
        for _ in range(begin["files"]):
            head = wire.hear()
            if head is None or "file" not in head:
                raise BadFrame("the leader's checkpoint ended too early")
            with (place / Path(head["file"]).name).open("wb") as target:
                wire.take_file(target, head["size"])
        return beginning(job, place, begin["epoch"], begin["samples"])

    def _watched(self, wire: Wire, ranks: Ranks, guard: Guard) -> None:
        while not self._is_over.is_set() and not self._stop.is_set():
            for heard in ranks.lines.take(TICK):
                self._pass_on(wire, heard)
            self._tell_exits(wire, ranks)
            if error := guard.error(time.monotonic()):
                return wire.say(breach=to_plain(RunError, error))
        return None

    def _await_end(self, wire: Wire) -> None:
        """The leader says after which microbatch to save, then that it is over, or is gone."""
        with suppress(OSError, StageflowError):
            while (head := wire.hear()) is not None:
                match head:
                    case {"epoch": int() as epoch, "microbatches": int() as microbatches}:
                        mark(work_folder(self._folder), Chosen(0, epoch, microbatches).file)
                    case _:
                        break
        self._is_over.set()

    def _tell_exits(self, wire: Wire, ranks: Ranks) -> None:
        """After the lines of a rank, which are on their way for a moment longer."""
        for rank, code in ranks.exits().items():
            if rank not in self._told:
                self._told.add(rank)
                wire.say(rank=rank, exit=code)

    def _pass_on(self, wire: Wire, heard: Heard) -> None:
        """One line; before it the file that it announces."""
        event, text = read_line(heard.text), heard.text
        match event:
            case Saved(_, epoch, samples, _, path):
                name = self._send(wire, path, f"{epoch}-{samples}-{Path(path).name}")
                text = write_line(replace(event, path=name))
            case Spans(_, _, path) | Artifact(_, path):
                text = write_line(replace(event, path=self._send(wire, path, Path(path).name)))
            case _:
                pass
        wire.say(rank=heard.rank, time=heard.time, text=text)

    def _send(self, wire: Wire, path: str, name: str) -> str:
        """Send a file that a rank announced, under `name`; what the leader calls it."""
        with opened(work_folder(self._folder), path) as file, file.path.open("rb") as data:
            wire.send_file(data, os.fstat(data.fileno()).st_size, file=name)
        return f"host-{self._host}-{name}"
