"""What one actor may do, written down in the audit log, and the log for those who may read it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from backend.errors import StageflowError
from backend.people.audit import AuditEntry, AuditOutcome
from backend.people.project import DEFAULT_PROJECT
from backend.people.rights import Actor, Right
from backend.storage.people.audit import SqlAuditLog

PORTION = 1000
TOKEN_READS = "This token may only read. Create one that may write, on the Account page."


class NotAllowed(StageflowError):
    """Somebody asked for what their role does not give."""

    advice = "Ask an administrator of this Stageflow for another role."


@dataclass(frozen=True, slots=True)
class Access:
    """What one actor may do, with the log in which it is written down. `project` is the one that
    they have chosen: what lists show, and where new things go."""

    actor: Actor
    log: SqlAuditLog
    project: int | None = None

    @property
    def home(self) -> int:
        """Where new things go: the chosen project, else the first that they see."""
        if self.project is not None:
            return self.project
        visible = self.actor.visible
        return DEFAULT_PROJECT if not visible or DEFAULT_PROJECT in visible else min(visible)

    def may(self, right: Right, project: int | None = None) -> bool:
        """Whether `require` would let this pass in a project: by default where new things go.
        For pages, that draw no button which would only answer with a refusal."""
        return self.actor.may(right, self.home if project is None else project)

    def why_not(self, right: Right, project: int | None = None) -> str | None:
        """None where they may, else a sentence for a button that is disabled."""
        if self.may(right, project):
            return None
        return f"Your role gives no right to {right.value} here. {NotAllowed.advice}"

    def require(
        self, right: Right, action: str, target: str = "", project: int | None = None
    ) -> None:
        """Before anything is changed in a project (None: in the team): notes it, or raises
        `NotAllowed` and notes that."""
        self.check(right, action, target, project)
        self.log.add(self.actor.name, action, target, AuditOutcome.DONE)

    def check(
        self, right: Right, action: str, target: str = "", project: int | None = None
    ) -> None:
        """The same for what only looks: a refusal alone is noted."""
        if self.actor.may(right, project):
            return
        self.log.add(self.actor.name, action, target, AuditOutcome.DENIED)
        limited = self.actor.token and self.actor.reads_only and right is Right.EDIT
        raise NotAllowed(
            f"not allowed: {self._who(project)} may not {action} {target}".rstrip(),
            TOKEN_READS if limited else "",
        )

    def _who(self, project: int | None) -> str:
        """The team's role explains the refusal only where it is the one that counts."""
        role = self.actor.role.value if project in (None, DEFAULT_PROJECT) else ""
        return f"{self.actor.name} ({role})" if role else self.actor.name


@dataclass(frozen=True)
class AuditService:
    """The log for those who may read it."""

    _access: Access

    def list(self, before: int | None = None, limit: int = 100) -> Sequence[AuditEntry]:
        """The newest first. Raises `NotAllowed`."""
        self._access.check(Right.MANAGE, "read", "the audit log")
        return self._access.log.list(before, limit)

    def all(self) -> Iterator[AuditEntry]:
        """Every entry, the newest first, read in portions. Raises `NotAllowed`."""
        self._access.require(Right.MANAGE, "export", "the audit log")
        before: int | None = None
        while entries := self._access.log.list(before, PORTION):
            yield from entries
            before = entries[-1].id
