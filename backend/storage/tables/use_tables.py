"""The tables of what nodes and runs use, over time: a row per slot, which newer points take."""

from typing import Any

from sqlalchemy import ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from backend.storage.tables.base import Base


class NodeUseRow(Base):
    """`level` is the number of the resolution, `time` in Unix seconds on the node's clock."""

    __tablename__ = "node_use"
    node: Mapped[str] = mapped_column(String(255), primary_key=True)
    level: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    slot: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    time: Mapped[float]
    use: Mapped[list[Any]]


class RunUseRow(Base):
    """The same of a run; the clock is that of its leader."""

    __tablename__ = "run_use"
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    level: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    slot: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    time: Mapped[float]
    use: Mapped[list[Any]]
