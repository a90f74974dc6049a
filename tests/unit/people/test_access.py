"""What pages ask before they draw a button."""

from collections.abc import Sequence

import pytest

from backend.people.audit import AuditEntry, AuditOutcome
from backend.people.rights import RIGHTS, Actor, Right, Role
from backend.services.people.access import Access, NotAllowed


class Written:
    """An audit log in a list."""

    def __init__(self) -> None:
        self.outcomes: list[AuditOutcome] = []

    def add(self, actor: str, action: str, target: str, outcome: AuditOutcome) -> None:
        self.outcomes.append(outcome)

    def list(self, before: int | None, limit: int) -> Sequence[AuditEntry]:
        return ()


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("right", Right)
def test_may_says_what_require_would_do_and_notes_nothing(role: Role, right: Right):
    log = Written()
    access = Access(Actor("Vera", role, RIGHTS[role]), log)
    said = access.may(right)
    assert log.outcomes == []
    assert (access.why_not(right) is None) == said
    try:
        access.require(right, "do", "it")
    except NotAllowed:
        assert not said
    else:
        assert said
    assert log.outcomes == [AuditOutcome.DONE if said else AuditOutcome.DENIED]
