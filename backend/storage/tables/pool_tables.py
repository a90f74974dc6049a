"""The tables of pools and of the jobs in which they carry runs."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from backend.runs.pools.job import JobState
from backend.storage.tables.base import Base, one_of


class PoolRow(Base):
    """`heartbeat` in Unix seconds on the database's clock."""

    __tablename__ = "pools"
    name: Mapped[str] = mapped_column(String(255), primary_key=True)
    kind: Mapped[str] = mapped_column(String(20))
    room: Mapped[dict[str, Any]]
    heartbeat: Mapped[float]
    fault: Mapped[str]


class JobRow(Base):
    """A job of a pool: the `number`th of its run."""

    __tablename__ = "jobs"
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    attempt: Mapped[int]
    pool: Mapped[str] = mapped_column(String(255), index=True)
    state: Mapped[JobState] = mapped_column(one_of(JobState))
    submitted_at: Mapped[datetime]
    engine_id: Mapped[str] = mapped_column(default="")
    reason: Mapped[str] = mapped_column(default="")
    advice: Mapped[str] = mapped_column(default="")
    starts_at: Mapped[datetime | None]
    hosts: Mapped[list[Any]]
    ended_at: Mapped[datetime | None]
    output: Mapped[str] = mapped_column(default="")
