"""The machines that run jobs, as their agents report them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from backend.cluster.cluster import Device

OFF = 2.0
"""Seconds by which clocks may differ: more than the way to the database takes."""


@dataclass(frozen=True, slots=True)
class Use:
    """How much of the machine, or of one GPU, is in use; None where nobody can tell.

    share            of the compute, 0 to 1
    memory, total    bytes in use, bytes there are
    celsius          temperature
    """

    name: str
    share: float | None = None
    memory: float | None = None
    total: float | None = None
    celsius: float | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """`alive`: its last sign of life is no older than a lease. `versions` name -> version.
    `use` as of that sign of life: the machine's, then that of each GPU. `address` is where the
    ranks of other nodes reach its own. `ahead`: seconds that its clock is ahead of the store's."""

    name: str
    devices: tuple[Device, ...]
    alive: bool
    heartbeat_at: datetime
    versions: Mapping[str, str]
    use: tuple[Use, ...] = ()
    address: str = ""
    ahead: float = 0.0

    @property
    def is_off(self) -> bool:
        """Is its clock so far off that what it notes stands at wrong times?"""
        return abs(self.ahead) > OFF


class NodeStore(Protocol):
    def beat(
        self,
        name: str,
        devices: tuple[Device, ...],
        versions: Mapping[str, str],
        use: tuple[Use, ...],
        address: str = "",
    ) -> None:
        """Note a sign of life, by the store's own clock."""
        ...

    def leave(self, name: str) -> None:
        """Forget the node."""
        ...

    def lost(self, name: str, lease: float) -> None:
        """The node is not alive up to its next sign of life."""
        ...

    def list(self, lease: float) -> Sequence[Node]:
        """The freshest first; alive = seen within `lease` seconds."""
        ...


class NodeService:
    """`lease` in seconds."""

    def __init__(self, store: NodeStore, lease: float) -> None:
        self._store = store
        self._lease = lease

    def list(self) -> Sequence[Node]:
        """The freshest sign of life first."""
        return self._store.list(self._lease)

    def beat(
        self,
        name: str,
        devices: tuple[Device, ...] = (),
        versions: Mapping[str, str] | None = None,
        use: tuple[Use, ...] = (),
        address: str = "",
    ) -> None:
        """The agent of node `name` is alive, has these devices, runs these versions, uses that
        much of the machine, and is reached at `address`."""
        self._store.beat(name, devices, versions or {}, use, address)

    def leave(self, name: str) -> None:
        """The agent of node `name` has ended by itself: nobody need wait for a lease."""
        self._store.leave(name)

    def lost(self, name: str) -> None:
        """Somebody who spoke with the agent of node `name` hears it no more: it counts as alive
        again with its next sign of life, and not before."""
        self._store.lost(name, self._lease)
