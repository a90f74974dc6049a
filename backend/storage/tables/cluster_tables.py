"""The table of clusters that are kept by name."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from backend.storage.tables.base import Base
from backend.storage.tables.values import Id


class ClusterRow(Base):
    """`key` is the name without its case, of which a project has one."""

    __tablename__ = "clusters"
    __table_args__ = (UniqueConstraint("project_id", "key"),)
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    name: Mapped[str]
    key: Mapped[str]
    cluster: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]
    note: Mapped[str] = mapped_column(server_default=text("''"))
    tags: Mapped[list[Any]] = mapped_column(server_default=text("'[]'"))
