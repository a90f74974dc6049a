"""People come in by invitation, password and session, whatever the database."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from backend.bootstrap import Backend
from backend.errors import InvalidInput, NotFound
from backend.people.person import LastAdministrator, Scope
from backend.people.rights import Role
from backend.services.people.accounts import (
    FREE_FAILURES,
    IDLE,
    INVITATION,
    LIFE,
    AccountService,
    InvitationOver,
    SignInFailed,
)
from backend.storage.people.audit import SqlAuditLog
from backend.storage.people.keys import SqlKeys
from backend.storage.people.people import SqlPeople
from tests.contract.people import PASSWORD, Clock, join


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def accounts(backend: Backend, clock: Clock) -> AccountService:
    database = backend.database
    return AccountService(SqlPeople(database), SqlKeys(database), SqlAuditLog(database), clock)


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


def test_a_stranger_locks_nobody_out_elsewhere(backend: Backend, accounts: AccountService):
    join(backend, "Bob")
    for address in ("203.0.113.9", "2001:db8::1"):
        for _ in range(FREE_FAILURES + 1):
            with pytest.raises(SignInFailed, match="wrong"):
                accounts.sign_in("Bob", "not the password", address=address)
    for name, address in (("Bob", "203.0.113.9"), (" bob", "203.0.113.9"), ("Bob", "2001:db8::2")):
        with pytest.raises(SignInFailed, match="locked until"):
            accounts.sign_in(name, PASSWORD, address=address)
    for address in ("203.0.113.8", "2001:db8:0:1::1", ""):
        assert accounts.sign_in("Bob", PASSWORD, address=address)


def test_a_name_of_any_length_is_only_wrong(accounts: AccountService):
    with pytest.raises(SignInFailed, match="wrong"):
        accounts.sign_in("".join(map(chr, range(0x4E00, 0x6E00))), PASSWORD)


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
