"""People come in by invitation, password, session or token, whatever the database."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from backend.bootstrap import Backend
from backend.errors import InvalidInput, NotFound, StageflowError
from backend.people.accounts import (
    FREE_FAILURES,
    IDLE,
    INVITATION,
    LIFE,
    AccountService,
    InvitationOver,
    SignInFailed,
)
from backend.people.audit import NotAllowed, Outcome
from backend.people.person import Person, Scope
from backend.people.rights import Right, Role
from backend.people.team import LastAdministrator, TokenService
from backend.runs.labels import Change
from backend.runs.run import Run
from backend.runs.spec import ProfileSpec
from backend.storage.audit import SqlAuditLog
from backend.storage.keys import SqlKeys
from backend.storage.people import SqlPeople

PASSWORD = "seven quiet stages"


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 20, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def go(self, time: timedelta) -> None:
        self.now += time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def accounts(backend: Backend, clock: Clock) -> AccountService:
    database = backend.database
    return AccountService(SqlPeople(database), SqlKeys(database), SqlAuditLog(database), clock)


def join(backend: Backend, name: str, role: Role = Role.EDITOR) -> Person:
    _, link = backend.team.add(name, role)
    secret = backend.accounts.accept(link, "", PASSWORD)
    found = backend.accounts.person(secret)
    assert found
    return found[0]


def test_the_first_link_makes_the_first_administrator(backend: Backend):
    link = backend.accounts.first_link()
    assert link
    secret = backend.accounts.accept(link, "Ada", PASSWORD)
    person, _ = backend.accounts.person(secret) or pytest.fail("no session")
    assert (person.name, person.role, person.joined) == ("Ada", Role.ADMIN, True)
    assert backend.accounts.first_link() is None
    with pytest.raises(InvitationOver):
        backend.accounts.accept(link, "Eve", PASSWORD)


def test_an_invitation_is_used_once_even_by_two_at_once(backend: Backend):
    _, link = backend.team.add("Bob", Role.VIEWER)

    def take(_: int) -> str | None:
        try:
            return backend.accounts.accept(link, "", PASSWORD)
        except InvitationOver:
            return None

    with ThreadPoolExecutor(4) as pool:
        taken = [secret for secret in pool.map(take, range(4)) if secret]
    assert len(taken) == 1


def test_a_new_invitation_ends_the_old_one_and_age_ends_both(
    backend: Backend, accounts: AccountService, clock: Clock
):
    clock.now = datetime.now(UTC)
    _, old = backend.team.add("Bob", Role.VIEWER)
    new = backend.team.invite("bob")
    with pytest.raises(InvitationOver):
        accounts.invitation(old)
    assert accounts.invitation(new).name == "Bob"
    clock.go(INVITATION + timedelta(minutes=1))
    with pytest.raises(InvitationOver):
        accounts.invitation(new)


@pytest.mark.parametrize(
    "password", ["short", "x" * 300, "Bob has a password", "aaaaaaaaaaaaaaaa"], ids=len
)
def test_a_weak_password_is_refused_and_the_link_stays(backend: Backend, password: str):
    _, link = backend.team.add("Bob", Role.VIEWER)
    with pytest.raises(InvalidInput):
        backend.accounts.accept(link, "", password)
    assert backend.accounts.accept(link, "", PASSWORD)


def test_name_and_password_open_a_session_whatever_the_case(backend: Backend):
    bob = join(backend, "Bob")
    secret = backend.accounts.sign_in("bob ", PASSWORD, "a browser")
    person, session = backend.accounts.person(secret) or pytest.fail("no session")
    assert person == bob
    assert session.client == "a browser"
    backend.accounts.sign_out(secret)
    assert backend.accounts.person(secret) is None


@pytest.mark.parametrize("name", ["Bob", "nobody"])
def test_failures_lock_a_name_whether_it_exists_or_not(
    backend: Backend, accounts: AccountService, clock: Clock, name: str
):
    join(backend, "Bob")
    for _ in range(FREE_FAILURES + 1):
        with pytest.raises(SignInFailed, match="wrong"):
            accounts.sign_in(name, "not the password")
    with pytest.raises(SignInFailed, match="locked until"):
        accounts.sign_in(name, PASSWORD)
    clock.go(timedelta(minutes=2))
    with pytest.raises(SignInFailed, match="wrong"):
        accounts.sign_in(name, "not the password")
    clock.go(timedelta(seconds=90))
    with pytest.raises(SignInFailed, match="locked until"):
        accounts.sign_in(name, PASSWORD)
    clock.go(timedelta(hours=2))
    if name == "Bob":
        assert accounts.sign_in(name, PASSWORD)


def test_a_session_ends_when_it_rests_and_when_it_is_old(
    backend: Backend, accounts: AccountService, clock: Clock
):
    join(backend, "Bob")
    resting = accounts.sign_in("Bob", PASSWORD)
    used = accounts.sign_in("Bob", PASSWORD)
    for _ in range(4):
        clock.go(IDLE * 0.9)
        assert accounts.person(used)
    assert accounts.person(resting) is None
    clock.go(LIFE)
    assert accounts.person(used) is None


def test_a_new_password_or_a_closed_door_ends_every_session(backend: Backend):
    join(backend, "Ada", Role.ADMIN)
    bob = join(backend, "Bob")
    before = backend.accounts.sign_in("Bob", PASSWORD)
    after = backend.accounts.accept(backend.team.invite("Bob"), "", "another long sentence")
    assert backend.accounts.person(before) is None
    assert backend.accounts.person(after)
    tokens = backend.acting(bob.actor()).tokens
    _, token = tokens.add("script", Scope.READ)
    assert backend.team.change("bob", disabled=True).disabled
    assert backend.accounts.person(after) is None
    assert backend.accounts.bearer(token) is None
    with pytest.raises(SignInFailed):
        backend.accounts.sign_in("Bob", "another long sentence")


def test_the_last_administrator_stays(backend: Backend):
    join(backend, "Ada", Role.ADMIN)
    for change in ({"role": Role.VIEWER}, {"disabled": True}):
        with pytest.raises(LastAdministrator):
            backend.team.change("Ada", **change)
    join(backend, "Bob", Role.ADMIN)
    assert backend.team.change("Ada", Role.VIEWER).role is Role.VIEWER


def test_a_name_is_taken_once(backend: Backend):
    backend.team.add("Bob", Role.VIEWER)
    with pytest.raises(InvalidInput, match="already"):
        backend.team.add("BOB", Role.ADMIN)
    for name in ("", " " * 5, "a\nb", "x" * 65):
        with pytest.raises(InvalidInput):
            backend.team.add(name, Role.VIEWER)
    with pytest.raises(NotFound):
        backend.team.change("nobody", Role.VIEWER)


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


def test_nobodys_secret_is_in_the_database(backend: Backend):
    bob = join(backend, "Bob")
    session = backend.accounts.sign_in("Bob", PASSWORD)
    _, token = backend.acting(bob.actor()).tokens.add("script", Scope.READ)
    link = backend.team.invite("Bob")
    with backend.database.read() as reading:
        kept = "".join(
            str(row)
            for table in ("people", "sessions", "tokens", "invitations", "audit_log")
            for row in reading.execute(text(f"SELECT * FROM {table}")).all()
        )
    for secret in (PASSWORD, session, token, link):
        assert secret not in kept


ACTS = {
    "add a model": lambda b, r: b.definitions.add("more.py", b"def model():\n    return 2\n"),
    "clone a model": lambda b, r: b.definitions.clone(r.spec.definition_id, "other"),
    "delete a model": lambda b, r: b.definitions.delete(r.spec.definition_id),
    "launch": lambda b, r: b.runs.submit(ProfileSpec(r.spec.definition_id)),
    "retry": lambda b, r: b.runs.retry(r.id),
    "cancel": lambda b, r: b.runs.cancel(r.id),
    "delete": lambda b, r: b.runs.delete(r.id),
    "label": lambda b, r: b.labels.change([r.id], Change(starred=True)),
    "people": lambda b, r: b.team.list(),
    "audit": lambda b, r: b.audit.list(),
}
MANAGING = {"people", "audit"}
SEEING = {
    "models": lambda b, r: b.definitions.list(),
    "run": lambda b, r: b.runs.get(r.id),
    "logs": lambda b, r: b.runs.logs(r.id),
}


@pytest.mark.parametrize("role", [Role.VIEWER, Role.EDITOR, Role.ADMIN])
@pytest.mark.parametrize("name", [*ACTS, *SEEING])
def test_every_role_may_do_exactly_what_the_table_says(
    backend: Backend, run: Run, role: Role, name: str
):
    actor = replace(join(backend, "Bob", role).actor())
    ended = backend.runs.cancel(run.id)
    need = Right.VIEW if name in SEEING else Right.MANAGE if name in MANAGING else Right.EDIT
    act = (ACTS | SEEING)[name]
    mine = backend.acting(actor)
    if actor.may(need):
        try:
            act(mine, ended)
        except NotAllowed:
            raise
        except StageflowError:
            pass  # a model in use is not deleted, whoever asks
        return
    with pytest.raises(NotAllowed, match="Bob"):
        act(mine, ended)
    newest = backend.audit.list(limit=1)[0]
    assert (newest.actor, newest.outcome) == ("Bob", Outcome.DENIED)


def test_whoever_acts_owns_the_run_and_is_in_the_log(backend: Backend, run: Run):
    bob = join(backend, "Bob")
    again = backend.acting(bob.actor()).runs.submit(run.spec, "mine")
    assert again.owner == "Bob"
    entry = backend.audit.list(limit=1)[0]
    assert (entry.actor, entry.action, entry.target) == ("Bob", "launch", "mine")
    assert entry.outcome is Outcome.DONE
    assert [e.id for e in backend.audit.all()] == sorted(
        (e.id for e in backend.audit.list(limit=1000)), reverse=True
    )


@pytest.mark.parametrize("change", ["UPDATE audit_log SET actor = 'Eve'", "DELETE FROM audit_log"])
def test_the_log_only_grows(backend: Backend, run: Run, change: str):
    before = backend.audit.list()
    assert before
    with (
        pytest.raises((SQLAlchemyError, StageflowError)),
        backend.database.write() as session,
    ):
        session.execute(text(change))
    assert backend.audit.list() == before


def test_the_number_of_a_deleted_run_is_never_given_again(backend: Backend, run: Run):
    backend.runs.cancel(run.id)
    backend.runs.delete(run.id)
    assert backend.runs.submit(run.spec).id > run.id
