"""The tables of what people tell each other of runs: comments, and views of the list."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from backend.storage.tables.tables import Base
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
