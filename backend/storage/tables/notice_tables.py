"""The tables of what people are told of runs. `person_id` 0 is who holds the machine."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from backend.runs.history.notices import PlaceKind
from backend.storage.tables.base import Base, one_of
from backend.storage.tables.values import Id


class PlaceRow(Base):
    """`address` is kept as it is: whoever reads the database can tell the place."""

    __tablename__ = "notice_places"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    person_id: Mapped[int] = mapped_column(index=True)
    kind: Mapped[PlaceKind] = mapped_column(one_of(PlaceKind))
    address: Mapped[str]
    events: Mapped[list[Any]]
    runs: Mapped[str]
    created_at: Mapped[datetime]


class WatchRow(Base):
    """`told`: whether the person is told of this run, whatever their places say of others."""

    __tablename__ = "watched_runs"
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    person_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    told: Mapped[bool]
