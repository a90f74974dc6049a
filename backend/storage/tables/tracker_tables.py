"""The table of runs that are followed in experiment trackers."""

from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from backend.runs.history.followed import Following
from backend.storage.tables.base import Base, one_of


class FollowedRow(Base):
    """`body` is a `Followed`; what is asked for is beside it. `due` in Unix seconds."""

    __tablename__ = "followed_runs"
    __table_args__ = (Index(None, "tracker", "state", "due"),)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    tracker: Mapped[str] = mapped_column(String(40), primary_key=True)
    state: Mapped[Following] = mapped_column(one_of(Following))
    due: Mapped[float]
    position: Mapped[int] = mapped_column(BigInteger)
    body: Mapped[dict[str, Any]]
