"""Link tests: asked for by people, carried by the nodes that take part."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from backend.errors import InvalidInput
from backend.links.link_test import LinkTest, LinkTestMember
from backend.people.rights import Right
from backend.queue.client import CeleryQueue
from backend.queue.messages import QueueUnreachable
from backend.runs.dispatch.nodes import Node
from backend.runs.pools.pool import Pool
from backend.services.people.access import Access
from backend.storage.nodes.links import SqlLinks

MOST_DEVICES = 32
"""Every pair is measured by itself: more would take minutes."""
log = logging.getLogger(__name__)


@dataclass
class LinkService:
    """`tests` holds them; `patience`: seconds that a test waits for all of its nodes."""

    tests: SqlLinks
    _queue: CeleryQueue
    _access: Access
    patience: float = 60.0

    def ask(self, nodes: Sequence[Node]) -> LinkTest:
        """Measure between all devices of the nodes that are alive. A queue that does not answer
        costs seconds, no more: agents look by themselves. Raises `InvalidInput`."""
        members = tuple(
            LinkTestMember(node.name, node.devices) for node in nodes if node.alive and node.devices
        )
        asked = self._add(members, "are registered by nodes that are alive")
        for member in members:
            try:
                self._queue.wake(member.node)
            except QueueUnreachable as fault:
                log.warning("%s", fault)
        return asked

    def ask_pool(self, pool: Pool) -> LinkTest:
        """Measure on two machines of the pool, or the one that it has, by a job: as soon as its
        cluster starts it. Raises `InvalidInput`."""
        kind = pool.room.largest
        if kind is None:
            raise InvalidInput(
                "what the pool has is not known yet", "The page Nodes says what is wrong with it."
            )
        machines = min(2, kind.count)
        devices = (kind.device,) * min(kind.devices, MOST_DEVICES // machines)
        members = (
            LinkTestMember(f"{pool.name}, machine {place}", devices, pool.name)
            for place in range(machines)
        )
        return self._add(tuple(members), f"are in the pool {pool.name}")

    def _add(self, members: tuple[LinkTestMember, ...], where: str) -> LinkTest:
        count = sum(len(member.devices) for member in members)
        if not 2 <= count <= MOST_DEVICES:
            raise InvalidInput(
                f"{count} devices {where}",
                f"Links are measured between 2 to {MOST_DEVICES} devices.",
            )
        self._access.require(Right.EDIT, "measure", f"links of {count} devices", self._access.home)
        return self.tests.add(tuple(sorted(members, key=lambda member: member.node)))

    def waiting(self, node: str) -> Sequence[LinkTest]:
        """What a node should take part in now, oldest first."""
        return self.tests.waiting(node, self.patience)
