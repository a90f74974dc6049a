"""The node agent: looks for runs in the database, carries them one at a time, reports the node.

The database is the truth; a message from the queue only makes the agent look sooner.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path

from backend.bootstrap import Backend
from backend.errors import StageflowError
from backend.links.link_test import LinkTest
from backend.services.runs.attempt import Attempt
from backend.services.runs.retention import PERIOD
from backend.storage.errors import DatabaseUnreachable
from workers.address import own_address
from workers.devices import devices, gpus, versions
from workers.links.participant import Participant
from workers.sandbox.sandbox import detect
from workers.supervisor.ranks import orphans
from workers.supervisor.reporting.spool_recovery import left_spools, recovered, spool_folder
from workers.supervisor.supervision import Supervision
from workers.supervisor.team.member import TeamMember
from workers.use import use

LOOK_OUT = 2.0
"""Seconds between looks for queued runs that no message told of."""

log = logging.getLogger(__name__)


class NodeAgent:
    """One per process. `start` returns at once; `run` blocks until its run has ended.

    It carries one run at a time, which has the node's devices to itself: its times are
    compared with a prediction. While the database was away, or the agent stood still itself,
    nobody could renew a lease: for the length of one after that it gives no run up.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._devices = devices()
        self._num_gpus = len(gpus())
        self._sandbox = detect(backend.settings)
        self._stop = threading.Event()
        self._slot = threading.Lock()
        self._reporting = threading.Lock()
        self._link_tests: set[int] = set()
        self._left: list[Path] = []
        self._gone: set[tuple[int, int]] = set()
        self._blind_until = -inf
        self._looked = time.monotonic()

    def start(self) -> None:
        """End what a dead agent left behind, then report the node and look out for runs."""
        log.info("sandbox: %s %s", self._sandbox.level, self._sandbox.reason)
        settings = self._backend.settings
        self._left = left_spools(spool_folder(settings))
        with suppress(StageflowError, OSError):  # it is tried again
            self._reap()
        self._repeat(self._beat, settings.heartbeat)
        self._repeat(self._clean, PERIOD)
        self._repeat(self._look_out, min(LOOK_OUT, settings.lease / 2))

    def run(self, run_id: int) -> None:
        """Asked for a run, carry one: whose turn it is; nothing where somebody else has it."""
        while not self._stop.is_set():
            if self._slot.acquire(timeout=0.5):
                node = self._backend.settings.node
                self._carry([*self._backend.dispatch.waiting_for(node), run_id])
                return

    def look_for_links(self) -> None:
        """Take part in the oldest test of links that waits for this node, each once, unless
        a run is carried."""
        node = self._backend.settings.node
        waiting = [t for t in self._backend.links.waiting(node) if t.id not in self._link_tests]
        if waiting and self._slot.acquire(blocking=False):
            self._link_tests.add(waiting[0].id)
            threading.Thread(target=self._measure, args=(waiting[0],), daemon=True).start()

    def stop(self) -> None:
        """Ask every run to end its ranks; `join` waits for them."""
        self._stop.set()

    def join(self, seconds: float = 8.0) -> None:
        """Wait, after `stop`, until no run is carried any more; then leave the list of nodes."""
        if self._slot.acquire(timeout=seconds):
            self._slot.release()
        node = self._backend.settings.node
        with self._reporting, suppress(StageflowError):
            self._backend.nodes.leave(node)
            self._backend.dispatch.leave(node)

    def _carry(self, run_ids: Sequence[int]) -> None:
        """The share that this node is asked to take, else the first of the runs that it gets.
        With the slot in hand, which is given back."""
        try:
            if self._took_part():
                return
            for run_id in run_ids:
                if self._carried(run_id):
                    return
        finally:
            self._slot.release()

    def _carried(self, run_id: int) -> bool:
        """Whether the run was this node's to carry."""
        mine = False
        while (attempt := self._claimed(run_id)) is not None:
            mine = True
            log.info("run %d claimed, attempt %d", run_id, attempt.number)
            Supervision(
                self._backend, attempt, self._stop, self._num_gpus, sandbox=self._sandbox
            ).run()
            log.info("run %d: attempt %d ended", run_id, attempt.number)
        return mine

    def _took_part(self) -> bool:
        """Carry a share of a run that another node leads, where this one is asked to."""
        node, reservations = self._backend.settings.node, self._backend.dispatch.reservations
        asked = reservations.summons(node)
        if asked is None or self._stop.is_set() or not reservations.answered(asked, node):
            return False
        log.info("run %d: a share of attempt %d", asked.run_id, asked.attempt)
        TeamMember(self._backend, asked, self._stop, self._num_gpus, self._sandbox).run()
        log.info("run %d: the share ended", asked.run_id)
        return True

    def _claimed(self, run_id: int) -> Attempt | None:
        """An attempt at the run, again and again where one ends in a restart."""
        if self._stop.is_set():
            return None
        return self._backend.dispatch.claim(run_id, self._backend.settings.node)

    def _measure(self, test: LinkTest) -> None:
        """With the slot in hand, which is given back."""
        settings = self._backend.settings
        try:
            log.info("link test %d", test.id)
            address = own_address(settings.node_address)
            links = self._backend.links
            Participant(links, test, settings.node, address, lambda: not self._stop.is_set()).play()
        finally:
            self._slot.release()

    def _look_out(self) -> None:
        """Give up runs whose agent is lost; carry the oldest that waits if none is carried."""
        sees = self._sees(time.monotonic())
        if self._left or self._gone or (sees and self._backend.dispatch.expire()):
            self._reap()
        node = self._backend.settings.node
        self._backend.dispatch.go_by(node)
        waiting = self._backend.dispatch.waiting_for(node)
        asked = self._backend.dispatch.reservations.summons(node)
        if (waiting or asked) and self._slot.acquire(blocking=False):
            threading.Thread(target=self._carry, args=(waiting,), daemon=True).start()
        self.look_for_links()

    def _sees(self, now: float) -> bool:
        """May this agent judge others? Not when it stood still itself: so may have they."""
        lease = self._backend.settings.lease
        if now - self._looked > LOOK_OUT + lease / 2:
            self._blind_until = now + lease
        self._looked = now
        return now >= self._blind_until

    def _beat(self) -> None:
        with self._reporting:
            if not self._stop.is_set():
                found = versions() | {"sandbox": self._sandbox.level.value}
                node = self._backend.settings.node
                self._backend.dispatch.go_by(node)
                address = own_address(self._backend.settings.node_address)
                self._backend.nodes.beat(node, self._devices, found, use(), address)

    def _clean(self) -> None:
        """What the projects' rules of retention say is taken away."""
        if cleared := self._backend.retention.clean():
            log.info("cleared by the rules of retention: runs %s", cleared)

    def _reap(self) -> None:
        """End what dead agents left, write what they had not written, give up their runs."""
        for folder in orphans.reap(self._backend.settings.home / "runs"):
            log.warning("ended the processes that a dead agent left in %s", folder)
            self._gone.add(orphans.attempt_of(folder))
        while self._left:
            if attempt := recovered(self._backend, self._left[0]):
                self._gone.add(attempt)
            self._left.pop(0)
        for run_id, number in sorted(self._gone):
            self._backend.dispatch.abandon(run_id, number, self._backend.settings.node)
            self._gone.discard((run_id, number))

    def _repeat(self, work: Callable[[], None], seconds: float) -> None:
        def loop() -> None:
            while not self._stop.is_set():
                try:
                    work()
                except DatabaseUnreachable as fault:
                    self._blind_until = time.monotonic() + self._backend.settings.lease
                    log.warning("%s: %s", work.__name__, fault)
                except StageflowError as fault:
                    log.warning("%s: %s", work.__name__, fault)
                except Exception:
                    log.exception(work.__name__)
                self._stop.wait(seconds)

        threading.Thread(target=loop, daemon=True).start()
