"""What is known of the ranks of a run: what they told, how they ended, whether they still work."""

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from backend.runs.events import Event, Finished, Heartbeat, RankError, Rescuing, Started
from backend.runs.run import RunError
from workers.supervisor.state import failure

SETTLE = 0.7
"""Seconds between the first sign of trouble and the search for its cause: when a rank dies its
peers complain about the connection, often before its exit is seen."""
ECHO = 10.0
"""As `SETTLE`, while ranks complain about others and none of those has ended: on a machine with too
much to do, a rank's end may be told seconds after its peers have noticed it."""
RESCUE = 60.0
"""Seconds in which ranks that lost another one save what they have."""
SILENCE = 60.0
"""Seconds without a line after which a rank that has spoken counts as hung."""
STALL = 600.0
"""Seconds within which a rank that works must finish an action."""
LOADING = 600.0
"""As `SILENCE`, for a rank that has not begun its work (imports, loading the data)."""
KILLING = frozenset(
    {
        signal.SIGKILL,
        signal.SIGTERM,
        signal.SIGSEGV,
        signal.SIGBUS,
        signal.SIGILL,
        signal.SIGFPE,
    }
)
"""Signals of which a rank dies through no will of its own: crashes, and others who end it. A
service manager or a scheduler sends SIGTERM to the ranks of an agent that it ends, too."""

Told = tuple[int, Event | None]
"""A rank and the event that it printed; None for plain text, which is a sign of life too."""


@dataclass(frozen=True, slots=True)
class RankStates:
    """By rank, in the order in which it was observed. Times are monotonic seconds.

    begun   when the ranks were launched
    limit   a limit that the run has exceeded, or a node that it has lost, and when that was seen
    rescuing   ranks that save what they have, because another one is lost
    moved   how many actions a rank has finished, and since when it has not finished more
    """

    world_size: int
    begun: float
    silence: float = SILENCE
    stall: float = STALL
    limit: RunError | None = None
    limited: float = 0.0
    rescuing: frozenset[int] = frozenset()
    started: frozenset[int] = frozenset()
    finished: frozenset[int] = frozenset()
    failed: Mapping[int, tuple[float, RankError]] = field(default_factory=dict)
    exits: Mapping[int, tuple[float, int]] = field(default_factory=dict)
    heard: Mapping[int, float] = field(default_factory=dict)
    moved: Mapping[int, tuple[int, float]] = field(default_factory=dict)

    def hear(self, told: Sequence[Told], now: float) -> "RankStates":
        """After these lines."""
        if not told:
            return self
        started, finished, rescuing = set(self.started), set(self.finished), set(self.rescuing)
        failed, moved = dict(self.failed), dict(self.moved)
        for rank, event in told:
            match event:
                case Started():
                    started.add(rank)
                case Heartbeat(_, int() as done):
                    if moved.get(rank, (-1, now))[0] != done:
                        moved[rank] = done, now
                case Heartbeat():  # it saves, or is not heard for a file on the way
                    moved.pop(rank, None)
                case Finished():
                    finished.add(rank)
                case Rescuing():
                    rescuing.add(rank)
                case RankError():
                    failed.setdefault(rank, (now, event))
                case _:
                    pass
        return replace(
            self,
            started=frozenset(started),
            finished=frozenset(finished),
            failed=failed,
            heard={**self.heard, **{rank: now for rank, _ in told}},
            moved=moved,
            rescuing=frozenset(rescuing),
        )

    def limits(self, limit: RunError | None, now: float) -> "RankStates":
        """After a limit was exceeded, or a node was lost."""
        if limit is None or self.limit is not None:
            return self
        return replace(self, limit=limit, limited=now)

    def exited(self, codes: Mapping[int, int], now: float) -> "RankStates":
        """After these exit codes of ranks that have ended (-9: by signal 9)."""
        ended = {rank: (now, code) for rank, code in codes.items() if rank not in self.exits}
        return replace(self, exits={**self.exits, **ended}) if ended else self

    @property
    def has_begun(self) -> bool:
        """A rank does its work, or did."""
        return bool(self.started | self.finished)

    @property
    def all_started(self) -> bool:
        return len(self.started | self.finished) == self.world_size

    @property
    def all_finished(self) -> bool:
        """Every rank said so and left with code 0."""
        is_complete = len(self.finished) == self.world_size == len(self.exits)
        return is_complete and self._trouble is None

    @property
    def _trouble(self) -> float | None:
        """When the first rank failed or died, or a node was lost; None while none did."""
        told = [time for time, _ in self.failed.values()]
        if self._lost_node:
            told.append(self.limited)
        return min(told + [self.exits[rank][0] for rank in self._died], default=None)

    @property
    def _died(self) -> list[int]:
        """Ranks that ended before their work was done, in the order of their ends."""
        return [
            rank for rank, (_, code) in self.exits.items() if code != 0 or rank not in self.finished
        ]

    @property
    def _lost_node(self) -> bool:
        return self.limit is not None and self.limit.kind == "NodeLost"

    @property
    def _is_echo(self) -> bool:
        """Do all ranks in trouble complain about others, one of which may yet be heard of?"""
        blaming = {rank for rank, (_, event) in self.failed.items() if failure.blames_peer(event)}
        troubled = self.failed.keys() | set(self._died)
        is_open = len(self.exits) < self.world_size
        return is_open and not self._lost_node and troubled <= blaming

    def error(self, now: float) -> RunError | None:
        """The first cause, once there has been time to hear every rank, and to save for those that
        do; None while all is well or not yet clear."""
        trouble = self._trouble
        if self.limit is not None and not self._lost_node:
            return self.cause()
        if trouble is None:
            return self._hung(now)
        saves = self.rescuing - self.exits.keys() and now - trouble < RESCUE
        settle = ECHO if self._is_echo else SETTLE
        return self.cause() if now - trouble >= settle and not saves else None

    def cause(self) -> RunError | None:
        """A limit exceeded, else a rank killed by a signal, else a rank's own failure, else a
        silent exit, else a rank that complains about a peer; None where nothing is wrong."""
        if self.limit is not None:
            return self.limit
        died = self._died
        for rank in died:
            if -self.exits[rank][1] in KILLING:
                return failure.killed(rank, -self.exits[rank][1])
        events = [event for _, event in self.failed.values()]
        own = [event for event in events if not failure.blames_peer(event)]
        if own:
            return failure.told(own[0])
        for rank in died:
            if rank not in self.failed:
                return failure.ended(rank, self.exits[rank][1])
        return failure.told(events[0]) if events else None

    def _hung(self, now: float) -> RunError | None:
        for rank in set(range(self.world_size)) - set(self.exits) - self.finished:
            limit = self.silence if rank in self.started else max(self.silence, LOADING)
            quiet = now - self.heard.get(rank, self.begun)
            if quiet > limit:
                return failure.hung(rank, quiet)
            if rank in self.moved and now - self.moved[rank][1] > self.stall:
                return failure.stalled(rank, now - self.moved[rank][1])
        return None
