"""The tables of what a team makes of runs: comments, views of the list, sweeps."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from backend.storage.tables.base import Base
from backend.storage.tables.values import Id


class CommentRow(Base):
    __tablename__ = "comments"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), index=True)
    author: Mapped[str]
    text: Mapped[str]
    created_at: Mapped[datetime]


class ViewRow(Base):
    """`key` is the name without its case, of which an owner has one; no `owner`: it is shared."""

    __tablename__ = "saved_views"
    __table_args__ = (UniqueConstraint("project_id", "owner", "key"),)
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    owner: Mapped[str]
    name: Mapped[str]
    key: Mapped[str]
    view: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]


class SweepRow(Base):
    """`spec` is a `SweepSpec`; a sweep that is open is looked at by the agents."""

    __tablename__ = "sweeps"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"), index=True)
    name: Mapped[str]
    owner: Mapped[str]
    spec: Mapped[dict[str, Any]]
    is_open: Mapped[bool]
    created_at: Mapped[datetime]
    runs: Mapped[list["SweepRunRow"]] = relationship(lazy="selectin", order_by="SweepRunRow.number")


class SweepRunRow(Base):
    """`values` of one run; `ended`: why the sweep ended it before it was done."""

    __tablename__ = "sweep_runs"
    sweep_id: Mapped[int] = mapped_column(ForeignKey("sweeps.id"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    run_id: Mapped[int | None] = mapped_column(ForeignKey("runs.id"), index=True)
    values: Mapped[dict[str, Any]]
    ended: Mapped[str]
