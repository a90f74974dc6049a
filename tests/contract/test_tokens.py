"""Tokens act for their owners, within what they may, whatever the database."""

from datetime import UTC, datetime, timedelta

import pytest

from backend.bootstrap import Backend
from backend.errors import InvalidInput, NotFound
from backend.people.person import Scope
from backend.people.rights import Right, Role
from backend.services.people.access import NotAllowed
from backend.services.people.team import TokenService
from backend.storage.people.keys import SqlKeys
from tests.contract.people import Clock, join


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_tokens_give_what_their_scope_says_and_no_more_than_the_role(
    backend: Backend, clock: Clock
):
    bob = join(backend, "Bob")
    tokens = TokenService(
        SqlKeys(backend.database), backend.acting(bob.actor()).tokens._access, clock
    )
    clock.now = datetime.now(UTC)
    _, reading = tokens.add("read", Scope.READ)
    kept, writing = tokens.add("write", Scope.WRITE, days=None)
    actor = backend.accounts.bearer(reading) or pytest.fail("no token")
    assert actor.rights == {Right.VIEW}
    with pytest.raises(NotAllowed) as refused:
        backend.acting(actor).access.require(Right.EDIT, "launch", "a run", project=1)
    assert "token may only read" in refused.value.advice
    viewer = join(backend, "Vic", Role.VIEWER).actor()
    with pytest.raises(NotAllowed) as asked:
        backend.acting(viewer).access.require(Right.EDIT, "launch", "a run", project=1)
    assert "administrator" in asked.value.advice
    writer = backend.accounts.bearer(writing) or pytest.fail("no token")
    assert writer.rights == {Right.VIEW, Right.EDIT}
    assert tokens.list()[0].used_at is not None
    assert backend.accounts.bearer(writing[:-1] + "x") is None
    tokens.revoke(kept.id)
    assert backend.accounts.bearer(writing) is None
    clock.go(timedelta(days=-100))
    _, old = tokens.add("old", Scope.READ, days=1)
    assert backend.accounts.bearer(old) is None
    with pytest.raises(NotFound):
        tokens.revoke(999)
    with pytest.raises(InvalidInput):
        tokens.add("for ever", Scope.READ, days=1000)


def test_an_administrators_token_does_not_manage(backend: Backend):
    ada = join(backend, "Ada", Role.ADMIN)
    _, secret = backend.acting(ada.actor()).tokens.add("script", Scope.WRITE)
    actor = backend.accounts.bearer(secret) or pytest.fail("no token")
    with pytest.raises(NotAllowed):
        backend.acting(actor).team.list()
