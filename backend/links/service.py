"""Link tests: asked for by people, carried by the nodes that take part."""

import logging
from collections.abc import Sequence
from typing import Protocol

from backend.errors import InvalidInput
from backend.links.link_test import Link, LinkTest, LinkTestMember
from backend.people.audit import Access
from backend.people.rights import Right
from backend.runs.dispatch.nodes import Node
from backend.runs.ports import QueueUnreachable

MOST_DEVICES = 32
"""Every pair is measured by itself: more would take minutes."""
log = logging.getLogger(__name__)


class LinkStore(Protocol):
    """Keeps tests; a change that comes after the end of a test is lost without a word."""

    def add(self, members: tuple[LinkTestMember, ...]) -> LinkTest: ...

    def latest(self) -> LinkTest | None: ...

    def get(self, test_id: int) -> LinkTest:
        """Raises `NotFound`."""
        ...

    def waiting(self, node: str, patience: float) -> Sequence[LinkTest]:
        """Those that wait for a node, oldest first; older than `patience` seconds they fail."""
        ...

    def meet(self, test_id: int, meeting: str) -> None: ...

    def finish(self, test_id: int, links: tuple[Link, ...]) -> None: ...

    def fail(self, test_id: int, error: str) -> None: ...


class Wakes(Protocol):
    def wake(self, node: str) -> None:
        """Let a node's agent look sooner. Raises `QueueUnreachable`."""
        ...


class LinkService:
    """`patience`: seconds that a test waits for all of its nodes."""

    def __init__(
        self, store: LinkStore, doorbell: Wakes, access: Access, patience: float = 60.0
    ) -> None:
        self._store = store
        self._access = access
        self._wakes = doorbell
        self.patience = patience

    def ask(self, nodes: Sequence[Node]) -> LinkTest:
        """Measure between all devices of the nodes that are alive. A queue that does not answer
        costs seconds, no more: agents look by themselves. Raises `InvalidInput`."""
        members = tuple(
            LinkTestMember(node.name, node.devices) for node in nodes if node.alive and node.devices
        )
        count = sum(len(member.devices) for member in members)
        if not 2 <= count <= MOST_DEVICES:
            raise InvalidInput(
                f"{count} devices are registered by nodes that are alive",
                f"Links are measured between 2 to {MOST_DEVICES} devices.",
            )
        self._access.require(Right.EDIT, "measure", f"links of {count} devices", self._access.home)
        asked = self._store.add(tuple(sorted(members, key=lambda member: member.node)))
        for member in members:
            try:
                self._wakes.wake(member.node)
            except QueueUnreachable as fault:
                log.warning("%s", fault)
        return asked

    def latest(self) -> LinkTest | None:
        return self._store.latest()

    def get(self, test_id: int) -> LinkTest:
        return self._store.get(test_id)

    def waiting(self, node: str) -> Sequence[LinkTest]:
        """What a node should take part in now, oldest first."""
        return self._store.waiting(node, self.patience)

    def meet(self, test_id: int, meeting: str) -> None:
        """The first node's process listens at "host:port"."""
        self._store.meet(test_id, meeting)

    def finish(self, test_id: int, links: Sequence[Link]) -> None:
        self._store.finish(test_id, tuple(links))

    def fail(self, test_id: int, error: str) -> None:
        self._store.fail(test_id, error)
