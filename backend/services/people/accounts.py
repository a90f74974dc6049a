"""Accounts: who is invited, how they sign in, and how that ends."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from ipaddress import IPv6Address, ip_address, ip_network

from backend.errors import InvalidInput, StageflowError
from backend.people.audit import AuditOutcome
from backend.people.person import Identity, Invitation, Person, Session
from backend.people.rights import Actor, Role
from backend.people.secret import digest, hashed, matches, new_secret
from backend.storage.people.audit import SqlAuditLog
from backend.storage.people.keys import SqlKeys
from backend.storage.people.people import SqlPeople

MAX_NAME = 64
IDLE = timedelta(days=7)
"""A session that nobody uses for so long ends."""
LIFE = timedelta(days=30)
"""After so long everybody signs in again."""
INVITATION = timedelta(days=3)
FREE_FAILURES = 5
IPV6_SITE = 64
"""Bits that a network's addresses have in common."""
FIRST_LOCK = timedelta(minutes=1)
LONGEST_LOCK = timedelta(hours=1)
STILL_SEEN = timedelta(minutes=1)
"""A session's use is written down once in so long, not at every request."""

Clock = Callable[[], datetime]


class SignInFailed(StageflowError):
    """Name and password do not fit; which of them is not told."""


class InvitationOver(StageflowError):
    """The link has been used, or is too old."""

    advice = "Ask an administrator for a new link (page People, or stageflow user invite NAME)."


def utc_now() -> datetime:
    """This machine's clock: sign-in forgives what leases do not."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class AccountService:
    """What somebody may do who has not come in yet, and with a session of their own."""

    _people: SqlPeople
    _keys: SqlKeys
    _log: SqlAuditLog
    _clock: Clock = utc_now

    def sign_in(self, name: str, password: str, client: str = "", address: str = "") -> str:
        """The secret of a new session. Raises `SignInFailed` and `TooBusy`; from the sixth failure
        in a row on the name is locked for whoever comes from that address, for a minute at first
        and an hour at most."""
        now = self._clock()
        tries = _tries(name, address)
        until = self._people.locked_until(tries)
        if until is not None and until > now:
            raise self._failure(name, f"too many failures; locked until {until:%H:%M} UTC")
        found = self._people.find(name)
        person, kept = found or (None, None)
        if not matches(password, kept) or person is None or person.disabled:
            self._count(tries, now)
            raise self._failure(name, "name or password is wrong")
        self._people.unlock(tries)
        self._log.add(person.name, "sign in", client, AuditOutcome.DONE)
        return self._open(person.id, client, now)

    def sign_in_as(self, who: Identity, newcomers: Role | None, client: str = "") -> str:
        """The secret of a new session for somebody whom a provider vouches for. The first time
        they are tied to the person whose name is their verified address; where there is none
        they join as `newcomers`, or stay out without one. Raises `SignInFailed`."""
        person = self._people.of_identity(who.issuer, who.subject) or self._tied(who, newcomers)
        if person.disabled:
            raise self._failure(person.name, f"the account {person.name} is disabled")
        self._log.add(person.name, "sign in", client, AuditOutcome.DONE)
        return self._open(person.id, client, self._clock())

    def _tied(self, who: Identity, newcomers: Role | None) -> Person:
        found = self._people.find(who.email) if who.email else None
        if found is not None:
            person = found[0]
        elif newcomers is not None:
            person = self._people.add(self._free_name(who), newcomers)
            self._log.add(person.name, "join", f"as {newcomers.value}", AuditOutcome.DONE)
        else:
            raise self._failure(who.email or who.name, "there is no account or invitation for you")
        self._people.tie(person.id, who.issuer, who.subject)
        return self._people.get(person.id)

    def _free_name(self, who: Identity) -> str:
        """The address, else the name; nobody can take another one's place by their name."""
        name = proper_name((who.email or who.name or who.subject)[:MAX_NAME])
        if self._people.find(name) is None:
            return name
        return proper_name(f"{name[: MAX_NAME - 9]} {digest(who.issuer + who.subject)[:8]}")

    def _failure(self, name: str, why: str) -> SignInFailed:
        self._log.add(name[:MAX_NAME], "sign in", "", AuditOutcome.DENIED)
        return SignInFailed(why, "Try again, or ask an administrator for a new link.")

    def _count(self, tries: str, now: datetime) -> None:
        more = self._people.failed(tries, now) - FREE_FAILURES
        if more > 0:
            self._people.lock(tries, now + min(LONGEST_LOCK, FIRST_LOCK * 2 ** min(more - 1, 10)))

    def _open(self, person_id: int, client: str, now: datetime) -> str:
        secret = new_secret()
        self._keys.add_session(digest(secret), person_id, client[:200], now, now + IDLE)
        return secret

    def person(self, secret: str) -> tuple[Person, Session] | None:
        """Whose session the secret opens; None where it opens none any more."""
        now = self._clock()
        found = self._keys.session(digest(secret), now)
        if found is None:
            return None
        session, person = found
        if now - session.seen_at > STILL_SEEN:
            expires = min(now + IDLE, session.created_at + LIFE)
            self._keys.seen(session.id, now, expires)
        return person, session

    def bearer(self, secret: str) -> Actor | None:
        """Who acts with this token, and how far it lets them; None where it is no token."""
        found = self._keys.token(digest(secret), self._clock())
        if found is None:
            return None
        token, person = found
        actor = person.actor(token.scope.rights, token.project)
        return replace(actor, token=token.name)

    def sign_out(self, secret: str) -> None:
        """End the session at once, on every page that uses it."""
        found = self._keys.session(digest(secret), self._clock())
        if found is not None:
            session, person = found
            self._keys.end_session(person.id, session.id)
            self._log.add(person.name, "sign out", "", AuditOutcome.DONE)

    def sessions(self, person_id: int) -> Sequence[Session]:
        """The live ones, the newest first."""
        return self._keys.sessions(person_id, self._clock())

    def end_session(self, person_id: int, name: str, session_id: int) -> None:
        """End one of a person's own sessions."""
        if self._keys.end_session(person_id, session_id):
            self._log.add(name, "end", f"session {session_id}", AuditOutcome.DONE)

    def first_link(self) -> str | None:
        """The secret of a link that makes the first administrator; None where one is there."""
        if any(person.joined for person in self._people.list()):
            return None
        secret = new_secret()
        self._keys.invite(digest(secret), None, self._clock() + INVITATION)
        return secret

    def invitation(self, secret: str) -> Invitation:
        """What the link is for. Raises `InvitationOver`."""
        found = self._keys.invitation(digest(secret), self._clock())
        if found is None:
            raise InvitationOver("this link has been used, or is too old")
        return found

    def accept(
        self, secret: str, name: str, password: str, client: str = "", address: str = ""
    ) -> str:
        """Set the password with an invitation; the secret of a first session. `name` counts
        for the first administrator alone. Raises `InvitationOver`, `InvalidInput`, `TooBusy`."""
        invited = self.invitation(secret)
        name = proper_name(invited.name or name)
        kept = hashed(password, name)
        taken = self._keys.take_invitation(digest(secret), self._clock())
        if taken is None:
            raise InvitationOver("this link has been used just now")
        (person_id,) = taken
        if person_id is None:
            person_id = self._people.add(name, Role.ADMIN).id
        self._people.set_password(person_id, kept)
        self._people.unlock(_tries(name, address))
        self._log.add(name, "set", "a password", AuditOutcome.DONE)
        return self._open(person_id, client, self._clock())


def _tries(name: str, address: str) -> str:
    """Under which failures of the name from the address are counted: a stranger elsewhere locks
    nobody out. Whoever has an IPv6 address has all that begin like it."""
    with suppress(ValueError):
        known = ip_address(address)
        if isinstance(known, IPv6Address):
            address = str(ip_network((known, IPV6_SITE), strict=False))
    return digest(f"{address} {name.strip().casefold()}")


def proper_name(name: str) -> str:
    """The name without spaces around it. Raises `InvalidInput`."""
    name = name.strip()
    if not 0 < len(name) <= MAX_NAME or not name.isprintable():
        raise InvalidInput(
            f"{name[:MAX_NAME]!r} is not a valid name", f"Use 1 to {MAX_NAME} printable characters."
        )
    return name
