"""The table of what ended runs reached, by metric."""

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from backend.storage.tables.base import Base


class RunMetricRow(Base):
    """The last value of a metric of an ended run, from its summary, to be filtered by."""

    __tablename__ = "run_metrics"
    __table_args__ = (Index(None, "name", "value", "run_id"),)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[float]
