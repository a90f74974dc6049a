"""The tables of nodes: who is there, what they are reserved for, who leads, how far they are."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from backend.storage.tables.base import Base
from backend.storage.tables.values import Id


class NodeRow(Base):
    """`heartbeat` in Unix seconds on the database's clock, of which the node's is `ahead`.
    `run_id`: the run for which alone its agent was started."""

    __tablename__ = "nodes"
    name: Mapped[str] = mapped_column(String(255), primary_key=True)
    devices: Mapped[list[Any]]
    versions: Mapped[dict[str, Any]]
    heartbeat: Mapped[float]
    use: Mapped[list[Any] | None]
    address: Mapped[str | None] = mapped_column(String(255))
    ahead: Mapped[float | None]
    run_id: Mapped[int | None]


class HeldDeviceRow(Base):
    """A device of a node that a run holds while this attempt of it is live."""

    __tablename__ = "held_devices"
    node: Mapped[str] = mapped_column(String(255), primary_key=True)
    device: Mapped[int] = mapped_column(primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), index=True)
    attempt: Mapped[int]


class ReservationRow(Base):
    """A node whose agent carries a share of a run that another one leads; `address`, `port` and
    `secret` are where it reports, once that is known."""

    __tablename__ = "reservations"
    node: Mapped[str] = mapped_column(String(255), primary_key=True)
    run_id: Mapped[int] = mapped_column(Id, primary_key=True)
    attempt: Mapped[int]
    answered: Mapped[bool]
    address: Mapped[str | None] = mapped_column(String(255))
    port: Mapped[int | None]
    secret: Mapped[str | None] = mapped_column(String(64))


class LeaseRow(Base):
    """A task that is one process's at a time: `holder`'s until then, in Unix seconds on the
    database's clock."""

    __tablename__ = "leases"
    name: Mapped[str] = mapped_column(String(255), primary_key=True)
    holder: Mapped[str]
    until: Mapped[float]


class LinkTestRow(Base):
    """A test of the links between nodes; `asked` in Unix seconds on the database's clock."""

    __tablename__ = "link_tests"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    state: Mapped[str] = mapped_column(String(16))
    members: Mapped[list[Any]]
    created_at: Mapped[datetime]
    asked: Mapped[float]
    rendezvous: Mapped[str] = mapped_column("meeting")
    links: Mapped[list[Any]]
    error: Mapped[str]
