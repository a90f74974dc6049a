"""The hosts of a run, as the agent that leads it sees them: a run on one host is a team of one.

leader   reserves the nodes, tells them where to report, starts its own ranks when all are
         there, hears every rank's lines, and alone writes to the database
member   starts its ranks, passes on what they say, the files that they announce, and how
         they end; ends them when the leader's connection closes (see `member`)
"""

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from backend.codec import from_plain, to_plain
from backend.errors import StageflowError
from backend.prediction.shapes import steady_shape
from backend.runs.attempts.checkpoints import stage_of
from backend.runs.dispatch.placement import Share
from backend.runs.events import Chosen, Heartbeat, write_line
from backend.runs.job import Job
from backend.runs.request.spec import RunSpec, TrainSpec
from backend.runs.run import RunError
from workers.supervisor.ranks.lines import Lines, PrintedLine
from workers.supervisor.ranks.place import Place
from workers.supervisor.team.connection import BadFrame, Connection, Moved

JOIN = 60.0
"""Seconds within which every other node must have come."""
LISTEN = 0.2
BEAT = 2.0
HELLO = 10.0
"""Seconds in which somebody who connects must say who it is."""

Begin = dict[str, int]
"""Where a run goes on: epoch, samples, and how many files of its checkpoint follow."""
Summon = Callable[[str, int, str], None]
"""Tells the other nodes: address, port, secret."""


class NodesMissing(StageflowError):
    """A node that was reserved did not come."""

    advice = (
        "Check the log of its agent; the leader's address must be reachable from there. A run with "
        "a checkpoint tries again by itself."
    )


class Team:
    """The hosts of a run, of which this one leads; `folder` is where its ranks write."""

    def __init__(self, shares: Sequence[Share], address: str, port: int, folder: Path) -> None:
        self._shares = {share.node: (host, share) for host, share in enumerate(shares)}
        self._awaited = {share.node for share in shares[1:]}
        self._address, self._rendezvous, self._folder = address, port, folder
        self._secret = secrets.token_hex(16)
        self._connections: dict[str, Connection] = {}
        self._threads: list[threading.Thread] = []
        self._begun: set[str] = set()
        self._codes: dict[int, int] = {}
        self._is_over = False
        self.error: RunError | None = None
        """A node that went away, or a limit that one of them saw exceeded."""
        self.lost: set[str] = set()
        """Nodes that did not come, or went away."""

    def gather(self, summon: Summon, goes_on: Callable[[], bool]) -> bool:
        """Wait until every other node has come; False where it need not go on. Raises
        `NodesMissing`, and what `summon` raises."""
        if not self._awaited:
            return True
        with socket.create_server((self._address, 0)) as listener:
            listener.settimeout(LISTEN)
            summon(self._address, int(listener.getsockname()[1]), self._secret)
            deadline = time.monotonic() + JOIN
            while missing := self._awaited - self._connections.keys():
                if not goes_on():
                    return False
                if time.monotonic() > deadline:
                    self.lost |= missing
                    names = ", ".join(sorted(missing))
                    raise NodesMissing(f"{names} did not join within {JOIN:.0f} s")
                with suppress(TimeoutError, BadFrame, OSError):
                    self._welcome(listener.accept()[0])
        return True

    def start(self, lines: Lines, job: Job) -> None:
        """Let them start their ranks; what those print goes into `lines`. They are sent what they
        need of the checkpoint from which `job` goes on, if it does."""
        for node, connection in self._connections.items():
            files = _needed(job, self._shares[node][1].ranks)
            begin = {"epoch": job.epoch, "samples": job.samples, "files": len(files)}
            told = (node, connection, job, begin, lines, files)
            thread = threading.Thread(target=self._listen, args=told, daemon=True)
            self._threads.append(thread)
            thread.start()

    def place(self, node: str) -> Place:
        """Where the ranks of `node` run and meet."""
        host, share = self._shares[node]
        hosts = len(self._shares)
        return Place(
            share.ranks,
            share.devices,
            self._rendezvous,
            self._address,
            host,
            hosts,
            held=share.held,
        )

    def choose(self, chosen: Chosen) -> None:
        """Tell the other ranks after which microbatch to save."""
        for node in self._begun.copy():  # it has its files: nobody else writes to it
            with suppress(OSError):  # whoever hears it finds it gone
                self._connections[node].send(
                    epoch=chosen.epoch, microbatches=chosen.num_microbatches
                )

    def show_stacks(self) -> None:
        """Let the ranks of other hosts print the stacks of their threads."""
        for node in self._begun.copy():
            with suppress(OSError):
                self._connections[node].send(stacks=True)

    def exits(self) -> dict[int, int]:
        return dict(self._codes)

    def stop(self) -> None:
        """Let them end their ranks; `end` waits for that."""
        self._is_over = True
        for connection in self._connections.values():
            with suppress(OSError):
                connection.send(end=True)

    def end(self) -> None:
        """Hear their last words, and close. May be called twice."""
        if not self._is_over:
            self.stop()
        for thread in self._threads:
            thread.join(5.0)
        for connection in self._connections.values():
            connection.close()

    def _welcome(self, caller: socket.socket) -> None:
        caller.settimeout(HELLO)
        connection = Connection.over(caller)
        hello = connection.receive() or {}
        node, secret = str(hello.get("node", "")), str(hello.get("secret", ""))
        if node not in self._awaited or not secrets.compare_digest(secret, self._secret):
            connection.close()
            raise BadFrame(f"{node!r} does not belong to this run")
        caller.settimeout(None)
        self._connections[node] = connection

    def _listen(
        self,
        node: str,
        connection: Connection,
        job: Job,
        begin: Begin,
        lines: Lines,
        files: Sequence[Path],
    ) -> None:
        """Send what the node begins with, which may take it long to take, and hear it out."""
        ranks = self._shares[node][1].ranks
        try:
            place, spec = asdict(self.place(node)), to_plain(RunSpec, job.spec)
            connection.send(place=place, begin=begin, spec=spec)
            for path in files:
                with path.open("rb") as data:
                    moved, size = _sign_of_life(ranks, lines), path.stat().st_size
                    connection.send_file(data, size, moved, file=path.name)
            self._begun.add(node)
            while (head := connection.receive()) is not None:
                self._note(node, head, connection, lines)
        except (OSError, ValueError, KeyError, TypeError, StageflowError) as fault:
            self._miss(node, str(fault))
        share = self._shares[node][1]
        if not set(share.ranks) <= self._codes.keys():
            self._miss(node, "it was closed")

    def _miss(self, node: str, why: str) -> None:
        if self._is_over:
            return
        self.lost.add(node)
        self.error = self.error or RunError(
            "NodeLost",
            f"the connection to the agent of node {node} is lost: {why}",
            "Check that machine and its agent's log; start the agent again (`stageflow worker`). A "
            "run with a checkpoint continues by itself once its nodes are alive; launch others "
            "again.",
        )

    def _note(
        self, node: str, head: dict[str, object], connection: Connection, lines: Lines
    ) -> None:
        host, share = self._shares[node]
        match head:
            case {"rank": int() as rank, "time": float() as when, "text": str() as text}:
                if rank in share.ranks:
                    lines.add(PrintedLine(rank, when, text, head.get("event") is True))
            case {"file": str() as name, "size": int() as size}:
                moved = _sign_of_life(share.ranks, lines)
                self._keep(f"host-{host}-{Path(name).name}", size, connection, moved)
            case {"rank": int() as rank, "exit": int() as code}:
                if rank in share.ranks:
                    self._codes[rank] = code
            case {"breach": dict() as told}:
                self.error = self.error or from_plain(RunError, told)
            case _:
                raise BadFrame(f"node {node} said {list(head)}")

    def _keep(self, name: str, size: int, connection: Connection, moved: Moved) -> None:
        """A plain new file in the ranks' folder, whatever links they may have put there."""
        place = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            with os.fdopen(os.open(name, flags, 0o600, dir_fd=place), "wb") as target:
                connection.receive_file(target, size, moved)
        finally:
            os.close(place)


def _needed(job: Job, ranks: tuple[int, ...]) -> list[Path]:
    """The files of the job's checkpoint that these ranks may read: all of them where it may have
    been cut into other stages."""
    files = sorted(Path(job.checkpoint).iterdir()) if job.checkpoint else []
    if not isinstance(job.spec, TrainSpec) or not job.own_checkpoint:
        return files
    coordinates = steady_shape(job.spec.plan).coordinates
    stages = {stage for rank in ranks for stage in coordinates[rank].stages}
    return [file for file in files if stage_of(file.name) in {None, *stages}]


def _sign_of_life(ranks: tuple[int, ...], lines: Lines) -> Moved:
    """While a file is on its way nothing else is heard from its node. What this gives, called for
    every piece, says now and then that the ranks there are not silent, if it takes long."""
    told = time.monotonic()

    def moved() -> None:
        nonlocal told
        if time.monotonic() - told > BEAT:
            told = time.monotonic()
            for rank in ranks:
                lines.add(PrintedLine(rank, time.time(), write_line(Heartbeat(rank)), True))

    return moved
