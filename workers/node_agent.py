"""The node agent: looks for runs in the database, carries them on the node's devices, reports it.

The database is the truth; a message from the queue only makes the agent look sooner.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from math import inf
from pathlib import Path

from backend.bootstrap import Backend
from backend.errors import InvalidInput, StageflowError
from backend.links.link_test import LinkTest
from backend.runs.use import UseHistory, UsePoint
from backend.services.runs.attempt import Attempt
from backend.services.runs.retention import PERIOD
from backend.storage.errors import DatabaseUnreachable
from workers import descriptors
from workers.address import own_address
from workers.carried_runs import CarriedRuns
from workers.devices import devices, gpus, versions
from workers.links.participant import Participant
from workers.sandbox.sandbox import detect
from workers.stop import Stop
from workers.supervisor.ranks import orphans
from workers.supervisor.reporting.spool_recovery import left_spools, recovered
from workers.supervisor.supervision import Supervision
from workers.supervisor.team.member import TeamMember
from workers.use import NodeUseMeter

LOOK_OUT = 2.0
"""Seconds between looks for queued runs that no message told of."""
SOON = 0.5
"""The same where no message tells of any."""
LEAVE = 5.0
"""Seconds that the last report to the list of nodes gets to end before this node leaves it."""

log = logging.getLogger(__name__)


def _make(shared: Path) -> None:
    """The folder, for its owner alone; raises `InvalidInput` where it can be none."""
    try:
        shared.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as fault:
        raise InvalidInput(
            f"{shared}: {fault.strerror}", "Correct STAGEFLOW_SHARED, or mount that folder."
        ) from None


class NodeAgent:
    """One per process. `start` and `look` return at once. Raises `InvalidInput` where there can be
    no shared folder.

    It carries several runs at once, each on devices of its own, or, where it was started for one
    run, an attempt of that one. While the database was away, or
    the agent stood still itself, nobody could renew a lease: for the length of one after that it
    gives no run up.
    """

    def __init__(self, backend: Backend, run_id: int | None = None) -> None:
        self._backend = backend
        self._run_id = run_id
        found = gpus()
        self._devices = devices(found, backend.settings.devices)
        self._gpus = tuple(gpu.uuid for gpu in found)
        _make(backend.settings.shared_folder)
        self._sandbox = detect(backend.settings)
        self._meter, self._use = NodeUseMeter(), UseHistory()
        self._stop = Stop()
        self._looking = threading.Lock()
        self._carried = CarriedRuns(self._look_again)
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
        self._left = left_spools(settings.spool_folder)
        with suppress(StageflowError, OSError):  # it is tried again
            self._reap()
        self._repeat(self._beat, settings.heartbeat)
        if self._run_id is None:
            self._repeat(self._clean, PERIOD)
        often = LOOK_OUT if self._run_id is None else SOON
        self._repeat(self._look_out, min(often, settings.lease / 2))

    def look(self) -> None:
        """Start every run, and every share of one, that is this node's to carry now."""
        with self._looking:
            if self._stop.is_near or self._carried.is_measuring:
                return
            self._take_part()
            if self._run_id is None:
                for run_id in self._backend.dispatch.waiting_for(self._backend.settings.node):
                    self._claim(run_id)
            elif not self._carried.has_carried:
                self._claim(self._run_id)

    @property
    def has_begun(self) -> bool:
        """Whether it carries something, or did."""
        return self._carried.has_carried

    @property
    def has_ended(self) -> bool:
        """Whether it carried something, and that is over."""
        return self.has_begun and self._carried.is_idle

    @property
    def is_near_its_end(self) -> bool:
        """Warned, or asked to stop: it takes up nothing any more."""
        return self._stop.is_near

    def _look_again(self) -> None:
        """There are free devices: another run need not wait for the next look-out."""
        try:
            self.look()
        except StageflowError as fault:  # the look-out meets it again
            log.warning("%s", fault)

    def look_for_links(self) -> None:
        """Take part in the oldest test of links that waits for this node, each once, unless
        a run is carried."""
        node = self._backend.settings.node
        waiting = [t for t in self._backend.links.waiting(node) if t.id not in self._link_tests]
        with self._looking:
            if waiting and not self._stop.is_near and self._carried.is_idle:
                self._link_tests.add(waiting[0].id)
                self._carried.measure(partial(self._measure, waiting[0]))

    def stop(self) -> None:
        """Ask every run to end its ranks; `join` waits for them. Signal handlers may call it."""
        self._stop.set()

    def until_stopped(self) -> None:
        """Wait until somebody has called `stop`."""
        self._stop.wait()

    def warn(self, seconds: float) -> None:
        """This agent will be ended in `seconds`: it takes up nothing any more, and ends a run
        that it leads with a last checkpoint. A share that another node leads, the leader ends."""
        self._stop.warn(seconds)

    def join(self, seconds: float = 8.0) -> None:
        """Wait, after `stop` or `warn`, until no run is carried any more, for so long or what is
        left of a warning; then leave the list of nodes. A run that is being claimed counts."""
        deadline = time.monotonic() + max(seconds, self._stop.seconds_left or 0.0)
        if self._looking.acquire(timeout=max(0.0, deadline - time.monotonic())):
            self._looking.release()
        self._carried.join(max(0.0, deadline - time.monotonic()))
        node = self._backend.settings.node
        if self._reporting.acquire(timeout=LEAVE):
            with suppress(StageflowError):
                self._backend.nodes.leave(node)
                self._backend.dispatch.leave(node)
            self._reporting.release()

    def _claim(self, run_id: int) -> None:
        """Carry the run, if it is this node's to carry. An agent that could not open its files
        leaves it to others, or for later."""
        if self._stop.is_near:
            return
        if descriptors.left() < descriptors.FOR_A_RUN:
            log.warning("run %d waits: this agent can open too few files (ulimit -n)", run_id)
            return
        attempt = self._backend.dispatch.claim(run_id, self._backend.settings.node)
        if attempt is not None:
            log.info("run %d claimed, attempt %d", run_id, attempt.number)
            self._carried.carry(attempt.shares[0].held, partial(self._supervise, attempt))

    def _supervise(self, attempt: Attempt) -> None:
        Supervision(self._backend, attempt, self._stop, self._gpus, sandbox=self._sandbox).run()
        log.info("run %d: attempt %d ended", attempt.run.id, attempt.number)

    def _take_part(self) -> None:
        """Carry the shares of runs that other nodes lead, where this one is asked to."""
        node, dispatch = self._backend.settings.node, self._backend.dispatch
        while (asked := dispatch.reservations.summons(node)) is not None:
            if not dispatch.reservations.answered(asked, node):
                return
            log.info("run %d: a share of attempt %d", asked.run_id, asked.attempt)
            held = dispatch.devices(asked.run_id, asked.attempt, node)
            member = TeamMember(self._backend, asked, self._stop, self._gpus, self._sandbox)
            self._carried.carry(held, member.run)

    def _measure(self, test: LinkTest) -> None:
        settings, links = self._backend.settings, self._backend.links
        log.info("link test %d", test.id)
        address = own_address(settings.node_address)
        Participant(links, test, settings.node, address, lambda: not self._stop.is_set()).play()

    def _look_out(self) -> None:
        """Give up runs whose agent is lost; carry those that wait for this node."""
        sees = self._sees(time.monotonic())
        if self._left or self._gone or (sees and self._backend.dispatch.expire()):
            self._reap()
        self._backend.dispatch.go_by(self._backend.settings.node)
        self.look()
        if self._run_id is None:
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
                used = self._meter(self._gpus)
                self._backend.nodes.beat(node, self._devices, found, used, address, self._run_id)
                points = self._use.add(UsePoint(time.time(), used))
                if points and self._run_id is None:
                    self._backend.use.keep_of_node(node, points)

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
