"""The tables. SQL is the truth: what is not here did not happen."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    ForeignKey,
    Index,
    LargeBinary,
    String,
    UniqueConstraint,
    false,
    select,
    text,
)
from sqlalchemy.orm import Mapped, column_property, mapped_column, relationship

from backend.runs.states import RunState
from backend.storage.tables.base import Base, Big, one_of
from backend.storage.tables.values import Id

State = one_of(RunState)


class ContentRow(Base):
    """Bytes by their SHA-256: equal files are kept once."""

    __tablename__ = "contents"
    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    data: Mapped[bytes] = mapped_column(LargeBinary)


class ProjectRow(Base):
    """`key` is the name without its case."""

    __tablename__ = "projects"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    name: Mapped[str]
    key: Mapped[str] = mapped_column(unique=True)
    archived: Mapped[bool] = mapped_column(server_default=false())
    quota: Mapped[dict[str, Any]]
    retention: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]


class DefinitionRow(Base):
    """Profiles and plans belong to the project of their definition."""

    __tablename__ = "definitions"
    __table_args__ = (
        UniqueConstraint("project_id", "name", "version"),
        UniqueConstraint("project_id", "name", "digest"),
    )
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"), server_default=text("1"))
    name: Mapped[str]
    version: Mapped[int]
    filename: Mapped[str]
    digest: Mapped[str] = mapped_column(ForeignKey("contents.digest"))
    size: Mapped[int]
    source: Mapped[str] = mapped_column(String(16))
    created_at: Mapped[datetime]


LABELS = ("owner", "starred", "name")
LISTED_BY = (
    "project_id",
    "state",
    "kind",
    "definition_id",
    "plan_id",
    "accuracy",
    "seconds",
    *LABELS,
)
NOTED = text("note <> ''")


class RunRow(Base):
    """A run with its current attempt: the row itself allows one live attempt at a time.

    token, lease_until   who holds it, until when (Unix seconds, the database's clock)
    last_seq             sequence number of the newest log line
    last_batch           number of the attempt's newest write: one that comes again is known
    plan_id, accuracy    from spec and summary, to be filtered and sorted by
    seconds              from start to end, once it has ended
    origin_id            the run that this one was launched again from
    project_id           that of its definition
    cleared_at           when the project's rule took its log, timelines and checkpoints away
    fallbacks            plans for fewer of its nodes, made when it was submitted
    stacks_asked         how often the stacks of its ranks were asked for
    """

    __tablename__ = "runs"
    __table_args__ = (
        *(Index(None, column, "id") for column in LISTED_BY),
        Index("ix_runs_noted", "id", sqlite_where=NOTED, postgresql_where=NOTED),
        {"sqlite_autoincrement": True},  # the number of a deleted run is never given again
    )
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    name: Mapped[str]
    kind: Mapped[str] = mapped_column(String(16))
    definition_id: Mapped[int] = mapped_column(ForeignKey("definitions.id"))
    spec: Mapped[dict[str, Any]]
    state: Mapped[RunState] = mapped_column(State)
    attempt: Mapped[int] = mapped_column(server_default=text("0"))
    node: Mapped[str | None]
    token: Mapped[str | None] = mapped_column(String(32))
    lease_until: Mapped[float | None]
    cancel_requested: Mapped[bool]
    last_seq: Mapped[int] = mapped_column(server_default=text("0"))
    last_batch: Mapped[int] = mapped_column(server_default=text("0"))
    progress: Mapped[dict[str, Any] | None]
    summary: Mapped[dict[str, Any]]
    error: Mapped[dict[str, Any] | None]
    sandbox: Mapped[str | None] = mapped_column(String(16))
    created_at: Mapped[datetime] = mapped_column(index=True)
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    owner: Mapped[str] = mapped_column(server_default=text("''"))
    starred: Mapped[bool] = mapped_column(server_default=false())
    note: Mapped[str] = mapped_column(server_default=text("''"))
    origin_id: Mapped[int | None] = mapped_column(ForeignKey("runs.id"), index=True)
    plan_id: Mapped[int | None] = mapped_column(Id)
    accuracy: Mapped[float | None]
    seconds: Mapped[float | None]
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"), server_default=text("1"))
    cleared_at: Mapped[datetime | None]
    fallbacks: Mapped[list[Any]] = mapped_column(server_default=text("'[]'"))
    stacks_asked: Mapped[int] = mapped_column(server_default=text("0"))
    tags: Mapped[list["TagRow"]] = relationship(lazy="selectin", order_by="TagRow.tag")


class AttemptRow(Base):
    """One try at a run: `outcome` once it is over, `first_seq` of its log, `step` from which
    it went on (null: from the beginning), `plan` and `factor` of a fallback (null: its own)."""

    __tablename__ = "attempts"
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    node: Mapped[str]
    started_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]
    outcome: Mapped[str | None] = mapped_column(String(16))
    error: Mapped[dict[str, Any] | None]
    first_seq: Mapped[int]
    step: Mapped[int | None]
    plan: Mapped[dict[str, Any] | None]
    factor: Mapped[float | None]


class CheckpointRow(Base):
    """A whole checkpoint; its files, of `size` bytes in all, lie in a folder of its own, named by
    attempt and step."""

    __tablename__ = "checkpoints"
    __table_args__ = (UniqueConstraint("run_id", "attempt", "step"),)
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"))
    attempt: Mapped[int]
    epoch: Mapped[int]
    samples: Mapped[int]
    step: Mapped[int]
    files: Mapped[list[Any]]
    size: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    best: Mapped[bool] = mapped_column(server_default=false())
    created_at: Mapped[datetime]


class TagRow(Base):
    __tablename__ = "run_tags"
    __table_args__ = (Index(None, "tag", "run_id"),)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    tag: Mapped[str] = mapped_column(primary_key=True)


class ProfileRow(Base):
    __tablename__ = "profiles"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    definition_id: Mapped[int] = mapped_column(ForeignKey("definitions.id"), index=True)
    run_id: Mapped[int | None] = mapped_column(ForeignKey("runs.id"), index=True)
    body: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]
    name: Mapped[str] = mapped_column(server_default=text("''"))
    note: Mapped[str] = mapped_column(server_default=text("''"))
    tags: Mapped[list[Any]] = mapped_column(server_default=text("'[]'"))
    project_id: Mapped[int] = column_property(
        select(DefinitionRow.project_id)
        .where(DefinitionRow.id == definition_id)
        .correlate_except(DefinitionRow)
        .scalar_subquery()
    )


class PlanRow(Base):
    __tablename__ = "plans"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    name: Mapped[str]
    profile_id: Mapped[int] = mapped_column(ForeignKey("profiles.id"), index=True)
    cluster: Mapped[dict[str, Any]]
    prediction: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]
    note: Mapped[str] = mapped_column(server_default=text("''"))
    tags: Mapped[list[Any]] = mapped_column(server_default=text("'[]'"))
    project_id: Mapped[int] = column_property(
        select(DefinitionRow.project_id)
        .join(ProfileRow, ProfileRow.definition_id == DefinitionRow.id)
        .where(ProfileRow.id == profile_id)
        .correlate_except(DefinitionRow, ProfileRow)
        .scalar_subquery()
    )


class MetricRow(Base):
    """`value` is null where it is not a number: SQLite cannot hold NaN."""

    __tablename__ = "metrics"
    __table_args__ = (Index(None, "run_id", "name", "step"),)
    id: Mapped[int] = mapped_column(Big, primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"))
    name: Mapped[str]
    step: Mapped[int]
    epoch: Mapped[int]
    value: Mapped[float | None]
    time: Mapped[float]


class LogRow(Base):
    __tablename__ = "log_lines"
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    time: Mapped[float]
    rank: Mapped[int | None]
    text: Mapped[str]


class SpanBatchRow(Base):
    """Encoded, compressed spans beside what is asked of them without decoding."""

    __tablename__ = "span_batches"
    __table_args__ = (Index(None, "run_id", "kind", "segment"),)
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"))
    kind: Mapped[str] = mapped_column(String(16))
    attempt: Mapped[int] = mapped_column(server_default=text("1"))
    segment: Mapped[int]
    rank: Mapped[int]
    num_spans: Mapped[int]
    data: Mapped[bytes] = mapped_column(LargeBinary)


class ArtifactRow(Base):
    """A file of a run; its bytes lie in the artifacts folder under their SHA-256."""

    __tablename__ = "artifacts"
    __table_args__ = (UniqueConstraint("run_id", "name"),)
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"))
    name: Mapped[str]
    size: Mapped[int] = mapped_column(BigInteger)
    digest: Mapped[str] = mapped_column(String(64))
