"""Who holds which device, in SQL: a device of a node is one row, so nobody can hold it twice."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, delete, insert, select
from sqlalchemy.exc import IntegrityError

from backend.cluster.cluster import Device
from backend.codec import from_plain
from backend.errors import StageflowError
from backend.runs.dispatch.placement import Share, settled
from backend.runs.states import LIVE
from backend.storage.database import Database
from backend.storage.tables.base import Base
from backend.storage.tables.node_tables import HeldDeviceRow
from backend.storage.tables.tables import RunRow
from backend.storage.tables.values import Few

HELD, NODES = Base.metadata.tables["held_devices"], Base.metadata.tables["nodes"]
Devices = tuple[Device, ...]
Taken = Mapping[str, Mapping[int, int]]
"""By node and number of a device, the run that holds it."""


class DevicesTaken(StageflowError):
    """Some of the devices that a run needs are held by other runs."""


class DevicesRaced(DevicesTaken):
    """Another run took one of them in the same moment: others may be free."""


@dataclass(frozen=True, slots=True)
class Claimant:
    """The attempt that takes devices. `whole`: no other run shall be on its nodes meanwhile."""

    run_id: int
    attempt: int
    whole: bool = False


def take(connection: Connection, by: Claimant, shares: Sequence[Share]) -> tuple[Share, ...]:
    """Let the run hold devices of every share, all of them or none: raises `DevicesTaken`, upon
    which the whole transaction is to be undone. What ended runs held is free.

    Two who take the same device meet at its row: the second one fails, on every database.
    """
    names = [share.node for share in shares]
    taken = _taken(connection, names)
    said = select(NODES.c.name, NODES.c.devices).where(NODES.c.name.in_(names))
    devices: dict[str, Devices] = {
        name: from_plain(Devices, found) for name, found in connection.execute(said)
    }
    placed = []
    for share in shares:
        there = taken.get(share.node, {})
        found = settled(share, devices.get(share.node, ()), there, by.whole)
        if found is None:
            raise DevicesTaken(f"run {by.run_id} needs devices of {share.node} that are not free")
        placed.append(found)
    _write(connection, by, placed)
    return tuple(placed)


def _write(connection: Connection, by: Claimant, shares: Sequence[Share]) -> None:
    """In one order, so that no two wait for each other."""
    live = select(RunRow.id).where(RunRow.id == HELD.c.run_id, RunRow.attempt == HELD.c.attempt)
    over = ~live.where(RunRow.state.in_(LIVE)).exists()
    rows = []
    for share in sorted(shares, key=lambda share: share.node):
        mine = (HELD.c.node == share.node) & HELD.c.device.in_(share.held)
        connection.execute(delete(HELD).where(mine, over))
        rows += [
            {"node": share.node, "device": device, "run_id": by.run_id, "attempt": by.attempt}
            for device in share.held
        ]
    try:
        connection.execute(insert(HELD), rows)
    except IntegrityError as fault:
        raise DevicesRaced("another run took them in the same moment") from fault


def _taken(connection: Connection, names: Sequence[str]) -> Taken:
    query = of_live_runs(HeldDeviceRow.node, HeldDeviceRow.device, HeldDeviceRow.run_id)
    query = query.where(HeldDeviceRow.node.in_(names))
    return by_node(connection.execute(query).all())


def by_node(rows: Sequence[Any]) -> Taken:
    """Of rows (node, device, run)."""
    found: dict[str, dict[int, int]] = {}
    for node, device, run in rows:
        found.setdefault(node, {})[device] = run
    return found


class SqlHoldings:
    """Of every run, whoever asks."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def taken(self) -> Taken:
        """The devices that live runs hold."""
        query = of_live_runs(HeldDeviceRow.node, HeldDeviceRow.device, HeldDeviceRow.run_id)
        query = query.order_by(HeldDeviceRow.node, HeldDeviceRow.device)
        with self._database.plain(reading=True) as connection:
            return by_node(connection.execute(query).all())

    def of_attempt(self, run_id: int, attempt: int) -> Mapping[str, tuple[int, ...]]:
        """By node, the devices that an attempt holds or held last."""
        query = select(HELD.c.node, HELD.c.device, HELD.c.run_id).where(
            HELD.c.run_id == run_id, HELD.c.attempt == attempt
        )
        with self._database.plain(reading=True) as connection:
            found = by_node(connection.execute(query.order_by(HELD.c.device)).all())
            return {node: tuple(devices) for node, devices in found.items()}


def of_live_runs(*wanted: Any) -> Select[Any]:
    """What is `wanted` of the devices that count as held."""
    live = (RunRow.id == HeldDeviceRow.run_id) & (RunRow.attempt == HeldDeviceRow.attempt)
    found = select(*wanted).select_from(HeldDeviceRow).join(RunRow, live)
    return found.where(Few(RunRow.state.in_(LIVE)))
