"""A node's part in a link test: a process per device, and the result from the first of them."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from backend.codec import from_json
from backend.links.link_test import Link, LinkTest
from backend.services.links import LinkService
from workers.address import LOOPBACK, interface
from workers.sandbox.bubblewrap import PROJECT
from workers.supervisor.ranks.environment import inherited

LOOK = 0.2
MOST_SECONDS = 240.0
INTERFACE = "GLOO_SOCKET_IFNAME"
MAX_TOLD = 300
Links = tuple[Link, ...]


class Participant:
    """`node`, which others reach at `address`, takes part in `test`; `goes_on` says whether the
    agent still runs."""

    def __init__(
        self,
        links: LinkService,
        test: LinkTest,
        node: str,
        address: str,
        goes_on: Callable[[], bool],
    ) -> None:
        self._links = links
        self._test = test
        self._node = node
        self._address = LOOPBACK if len(test.members) == 1 else address
        self._goes_on = goes_on
        self._is_first = test.members[0].node == node

    def play(self) -> None:
        """Returns when this node's processes have ended; the test is finished or failed."""
        try:
            rendezvous = self._open() if self._is_first else self._found()
            if rendezvous:
                self._wait(self._start(rendezvous))
        except OSError as fault:
            self._links.tests.fail(self._test.id, f"{self._node}: {fault}")

    def _open(self) -> str:
        """A free port at this node's address, told to the others."""
        with socket.create_server((self._address, 0)) as free:
            rendezvous = f"{self._address}:{free.getsockname()[1]}"
        self._links.tests.meet(self._test.id, rendezvous)
        return rendezvous

    def _found(self) -> str:
        """Where the first node listens; "" where it does not come."""
        deadline = time.monotonic() + self._links.patience
        while self._goes_on() and time.monotonic() < deadline:
            test = self._links.tests.get(self._test.id)
            if test.rendezvous or test.state.is_final:
                return "" if test.state.is_final else test.rendezvous
            time.sleep(LOOK)
        self._links.tests.fail(self._test.id, f"{self._test.members[0].node} did not join")
        return ""

    def _start(self, rendezvous: str) -> list["subprocess.Popen[str]"]:
        host, _, port = rendezvous.rpartition(":")
        first = self._test.first_device(self._node)
        names = [member.node for member in self._test.members]
        count = len(self._test.members[names.index(self._node)].devices)
        return [
            subprocess.Popen(
                [sys.executable, "-m", "workers.links.main"],
                env={
                    **inherited(os.environ),
                    INTERFACE: interface(self._address),
                    "PYTHONPATH": str(PROJECT),
                    "OMP_NUM_THREADS": "1",
                    "RANK": str(first + local),
                    "LOCAL_RANK": str(local),
                    "WORLD_SIZE": str(self._test.num_devices),
                    "MASTER_ADDR": host,
                    "MASTER_PORT": port,
                },
                cwd=Path("/"),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            for local in range(count)
        ]

    def _wait(self, ranks: Sequence["subprocess.Popen[str]"]) -> None:
        deadline = time.monotonic() + MOST_SECONDS
        try:
            while any(rank.poll() is None for rank in ranks):
                if any(rank.poll() for rank in ranks) or time.monotonic() > deadline:
                    break
                if not self._goes_on():
                    break
                time.sleep(LOOK)
            self._conclude(ranks)
        finally:
            for rank in ranks:
                with suppress(ProcessLookupError):
                    rank.kill()
                rank.communicate()

    def _conclude(self, ranks: Sequence["subprocess.Popen[str]"]) -> None:
        for local, rank in enumerate(ranks):
            if code := rank.poll():
                told = rank.communicate()[1].strip().splitlines() or ["it printed nothing"]
                text = f"device {local} of {self._node} ended with {code}: {told[-1][:MAX_TOLD]}"
                return self._links.tests.fail(self._test.id, text)
        if any(rank.poll() is None for rank in ranks):
            return self._links.tests.fail(
                self._test.id, f"{self._node} was stopped, or took too long"
            )
        if self._is_first:
            found: Links = from_json(Links, ranks[0].communicate()[0].strip().splitlines()[-1])
            self._links.tests.finish(self._test.id, found)
        return None
