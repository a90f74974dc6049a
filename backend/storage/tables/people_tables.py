"""The tables of people, and of what lets them in. Secrets stand there as digests alone."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, String, false, text
from sqlalchemy.orm import Mapped, mapped_column, relationship

from backend.people.audit import AuditOutcome
from backend.people.person import Scope
from backend.people.rights import Role
from backend.storage.tables.base import Base, Big, one_of
from backend.storage.tables.values import Id


class PersonRow(Base):
    """`key` is the name without its case; `password` an argon2id hash, null until it is set."""

    __tablename__ = "people"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    name: Mapped[str]
    key: Mapped[str] = mapped_column(unique=True)
    role: Mapped[Role] = mapped_column(one_of(Role))
    password: Mapped[str | None]
    disabled: Mapped[bool] = mapped_column(server_default=false())
    joined: Mapped[bool] = mapped_column(server_default=false())
    created_at: Mapped[datetime]
    memberships: Mapped[list["MemberRow"]] = relationship(lazy="selectin")


class MemberRow(Base):
    """The role of a person in a project other than the first."""

    __tablename__ = "members"
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"), primary_key=True)
    person_id: Mapped[int] = mapped_column(ForeignKey("people.id"), primary_key=True, index=True)
    role: Mapped[Role] = mapped_column(one_of(Role))


class IdentityRow(Base):
    """Who a person is to an identity provider."""

    __tablename__ = "identities"
    issuer: Mapped[str] = mapped_column(primary_key=True)
    subject: Mapped[str] = mapped_column(primary_key=True)
    person_id: Mapped[int] = mapped_column(ForeignKey("people.id"), index=True)


class FailureRow(Base):
    """Failures to sign in, in a row, under names that exist and names that do not."""

    __tablename__ = "sign_in_failures"
    key: Mapped[str] = mapped_column(primary_key=True)
    failures: Mapped[int] = mapped_column(server_default=text("0"))
    failed_at: Mapped[datetime] = mapped_column(index=True)
    locked_until: Mapped[datetime | None]


class SessionRow(Base):
    __tablename__ = "sessions"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    person_id: Mapped[int] = mapped_column(ForeignKey("people.id"), index=True)
    client: Mapped[str]
    created_at: Mapped[datetime]
    seen_at: Mapped[datetime]
    expires_at: Mapped[datetime]


class TokenRow(Base):
    __tablename__ = "tokens"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    person_id: Mapped[int] = mapped_column(ForeignKey("people.id"), index=True)
    name: Mapped[str]
    hint: Mapped[str]
    scope: Mapped[Scope] = mapped_column(one_of(Scope))
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    used_at: Mapped[datetime | None]
    project_id: Mapped[int | None] = mapped_column(ForeignKey("projects.id"))


class InvitationRow(Base):
    """`person_id` is null for the first administrator, who chooses a name."""

    __tablename__ = "invitations"
    digest: Mapped[str] = mapped_column(String(64), primary_key=True)
    person_id: Mapped[int | None] = mapped_column(ForeignKey("people.id"), index=True)
    expires_at: Mapped[datetime]


class AuditRow(Base):
    """Triggers of the database refuse to change or delete a row."""

    __tablename__ = "audit_log"
    __table_args__ = (Index(None, "actor", "id"),)
    id: Mapped[int] = mapped_column(Big, primary_key=True)
    time: Mapped[datetime]
    actor: Mapped[str]
    action: Mapped[str]
    target: Mapped[str]
    outcome: Mapped[AuditOutcome] = mapped_column(one_of(AuditOutcome))
