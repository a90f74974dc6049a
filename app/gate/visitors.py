"""Who comes: by the cookie of a session, by a token, or whoever there is where nobody signs in."""

import time
from collections.abc import Callable
from threading import Lock

from starlette.requests import HTTPConnection

from app.api import gate as machine
from app.gate.rules import AccessRule
from backend.bootstrap import Backend
from backend.people.rights import Actor, operator
from backend.people.secret import digest
from backend.settings import Settings, SignIn

REMEMBERED = 2.0
"""Seconds for which a session counts without asking the database: a page is a hundred files."""

MAX_KNOWN = 10_000

_known: dict[tuple[str, str], tuple[float, Actor]] = {}
_lock = Lock()


def cookie_name(settings: Settings) -> str:
    """Over TLS the browser itself sees to it that no other host can set the cookie."""
    return "__Host-stageflow" if settings.is_secure else "stageflow"


def address_of(connection: HTTPConnection) -> str:
    """From where it comes; behind a proxy as that one says."""
    return connection.client.host if connection.client else ""


def by_cookie(secret: str, backend: Backend) -> Actor | None:
    """Whose session it is; None where it is none."""
    key = (backend.settings.sql_url, digest(secret))
    now = time.monotonic()
    with _lock:
        since, known = _known.get(key, (0.0, None))
    if known is not None and now - since < REMEMBERED:
        return known
    found = backend.accounts.person(secret)
    if found is None:
        return None
    actor = found[0].actor()
    with _lock:
        if len(_known) >= MAX_KNOWN:
            _known.clear()
        _known[key] = now, actor
    return actor


def forget() -> None:
    """Ask the database again: a session has just ended, or a role has changed."""
    with _lock:
        _known.clear()


def is_by_token(connection: HTTPConnection, rule: AccessRule, settings: Settings) -> bool:
    """Is it a token that decides who comes? Only of a program, and beside no cookie."""
    has_token = rule is AccessRule.PROGRAM and "authorization" in connection.headers
    if settings.sign_in is SignIn.OFF:
        return has_token and bool(settings.api_token)
    return has_token and cookie_name(settings) not in connection.cookies


def actor_of(
    connection: HTTPConnection, rule: AccessRule, connect: Callable[[], Backend], settings: Settings
) -> Actor | None:
    """Who acts in this connection; None = nobody who is known. Raises `Refused` where nobody
    signs in and the API is asked by another machine."""
    if settings.sign_in is SignIn.OFF:
        if rule is AccessRule.PROGRAM:
            machine.admit(connection, settings)
        return operator(settings.user)
    backend = connect()
    secret = connection.cookies.get(cookie_name(settings), "")
    actor = by_cookie(secret, backend) if secret else None
    if actor is None and rule is AccessRule.PROGRAM:
        scheme, _, token = connection.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return backend.accounts.bearer(token.strip())
    return actor
