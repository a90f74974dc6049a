"""From what the ranks said and how they ended to what became of the run. No I/O."""

import signal
from dataclasses import dataclass, field

from backend.runs.events import Event, Failed, Finished, Heartbeat, Started
from backend.runs.run import RunError

SETTLE = 0.7
"""Seconds between the first sign of trouble and the verdict: when a rank dies its peers
complain about the connection, often before its exit is seen."""
SILENCE = 60.0
"""Seconds without a line after which a rank that has spoken counts as hung."""
STALL = 600.0
"""Seconds within which a rank that works must finish an action."""
LOADING = 600.0
"""As `SILENCE`, for a rank that has not begun its work (imports, loading the data)."""

PEER_KINDS = frozenset({"PeerLost"})
PEER_WORDS = ("connection closed by peer", "connection reset by peer", "broken pipe")
DISK_WORDS = ("no space left on device", "errno 28")
FREE_SPACE = "Free some space there, or set STAGEFLOW_HOME to a larger disk, and run it again."
CRASHES = frozenset({signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE})


@dataclass
class Tally:
    """What is known of the ranks. `now` and all times are monotonic seconds; `breach` is a
    limit that the run has exceeded. `moved` holds, by rank, what it has done and since when."""

    world_size: int
    now: float
    silence: float = SILENCE
    started: set[int] = field(default_factory=set)
    finished: dict[int, Finished] = field(default_factory=dict)
    failed: dict[int, tuple[float, Failed]] = field(default_factory=dict)
    exits: dict[int, tuple[float, int]] = field(default_factory=dict)
    heard: dict[int, float] = field(default_factory=dict)
    breach: RunError | None = None
    stall: float = STALL
    moved: dict[int, tuple[int, float]] = field(default_factory=dict)

    def hear(self, rank: int, event: Event | None, now: float) -> None:
        """A line of `rank`: an event, or None for plain text, which is a sign of life too."""
        self.heard[rank] = now
        match event:
            case Started():
                self.started.add(rank)
            case Heartbeat(_, int() as done):
                if self.moved.get(rank, (-1, now))[0] != done:
                    self.moved[rank] = done, now
            case Finished():
                self.finished[rank] = event
            case Failed():
                self.failed.setdefault(rank, (now, event))
            case _:
                pass

    def exited(self, codes: dict[int, int], now: float) -> None:
        """The exit codes of the ranks that have ended (-9: by signal 9)."""
        for rank, code in codes.items():
            self.exits.setdefault(rank, (now, code))

    @property
    def all_started(self) -> bool:
        return len(self.started | set(self.finished)) == self.world_size

    @property
    def all_finished(self) -> bool:
        """Every rank said so and left with code 0."""
        return len(self.finished) == self.world_size == len(self.exits) and not self.trouble

    @property
    def epochs(self) -> int:
        return max((event.epochs for event in self.finished.values()), default=0)

    @property
    def trouble(self) -> float | None:
        """When the first rank failed or died; None while none did."""
        told = [time for time, _ in self.failed.values()]
        return min(told + [self.exits[rank][0] for rank in self._died()], default=None)

    def _died(self) -> list[int]:
        """Ranks that ended before their work was done, in the order of their ends."""
        return [
            rank for rank, (_, code) in self.exits.items() if code != 0 or rank not in self.finished
        ]

    def error(self, now: float) -> RunError | None:
        """The first cause, once there has been time to hear every rank; None while all is
        well or not yet clear."""
        if self.breach is not None:
            return self.breach
        if self.trouble is None:
            return self._hung(now)
        return self.cause() if now - self.trouble >= SETTLE else None

    def cause(self) -> RunError | None:
        """A limit exceeded, else a rank killed by a signal, else a rank's own failure, else a
        silent exit, else a rank that complains about a peer; None where nothing is wrong."""
        if self.breach is not None:
            return self.breach
        died = self._died()
        for rank in died:
            if -self.exits[rank][1] in CRASHES:
                return killed(rank, -self.exits[rank][1])
        events = [event for _, event in self.failed.values()]
        own = [event for event in events if not blames_peer(event)]
        if own:
            return told(own[0])
        for rank in died:
            if rank not in self.failed:
                return ended(rank, self.exits[rank][1])
        return told(events[0]) if events else None

    def _hung(self, now: float) -> RunError | None:
        for rank in set(range(self.world_size)) - set(self.exits) - set(self.finished):
            limit = self.silence if rank in self.started else max(self.silence, LOADING)
            quiet = now - self.heard.get(rank, self.now)
            if quiet > limit:
                return hung(rank, quiet)
            if rank in self.moved and now - self.moved[rank][1] > self.stall:
                return stalled(rank, now - self.moved[rank][1])
        return None


def blames_peer(event: Failed) -> bool:
    """Is this only the echo of another rank's death?"""
    text = f"{event.kind} {event.message} {event.detail}".lower()
    return event.kind in PEER_KINDS or any(word in text for word in PEER_WORDS)


def told(event: Failed) -> RunError:
    """A rank's own words; a full disk under its own name whoever met it."""
    text = f"{event.message} {event.detail}".lower()
    if any(word in text for word in DISK_WORDS):
        return RunError("DiskFull", f"rank {event.rank}: {event.message}", FREE_SPACE, event.detail)
    return RunError(event.kind, event.message, event.advice, event.detail)


def killed(rank: int, number: int) -> RunError:
    """The error of a rank that signal `number` ended."""
    advice = (
        "Somebody ended it, or the system did because memory ran out: try a smaller microbatch "
        "or more stages, and look at the machine's kernel log."
        if number == signal.SIGKILL
        else "Native code crashed. The log may hold its last words."
    )
    return RunError("RankKilled", f"rank {rank} was killed by signal {number}", advice)


def ended(rank: int, code: int) -> RunError:
    """The error of a rank that left without a word."""
    return RunError(
        "RankEnded",
        f"rank {rank} ended with exit code {code} before its work was done",
        "The log holds its last words; a definition must not call exit().",
    )


def hung(rank: int, seconds: float) -> RunError:
    """The error of a rank that has been silent for `seconds`."""
    return RunError(
        "RankHung",
        f"rank {rank} has given no sign of life for {seconds:.0f} s",
        "A deadlock or a call that never returns: look at the end of the log.",
    )


def stalled(rank: int, seconds: float) -> RunError:
    """The error of a rank that lives and has finished no action for `seconds`."""
    return RunError(
        "RankHung",
        f"rank {rank} has finished no action for {seconds:.0f} s",
        "A deadlock, or a peer that does not send; where an action may take so long, raise "
        "STAGEFLOW_STALL.",
    )
