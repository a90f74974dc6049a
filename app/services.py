"""The Backend of this process, in the name of the visitor who asks it for something."""

from collections.abc import Callable
from typing import TypeVar

import streamlit as st

from app.gate.visitors import by_cookie, cookie_name, forget
from app.server.connection import connected
from app.session import state
from backend.bootstrap import Backend
from backend.errors import StageflowError
from backend.people.rights import Actor
from backend.settings import SignIn, load_settings

Found = TypeVar("Found")


class SignedOut(StageflowError):
    """The visitor's session has ended while the page was open."""

    advice = "Reload the page to sign in; it then returns here."


def backend() -> Backend:
    """The services in the visitor's name and in the project that they have chosen. Raises
    `SchemaOutdated` or `DatabaseUnreachable`, and asks again next time; `SignedOut` where the
    visitor's session is over."""
    return _within(_secret(), state.chosen_project())


def later(read: Callable[[Backend], Found]) -> Callable[[], Found]:
    """`read` with the services of whoever looks at the page now, for when it is called: what a
    download holds is made in a thread that knows no visitor. Their session is asked for then."""
    secret, project = _secret(), state.chosen_project()
    return lambda: read(_within(secret, project))


def visitor() -> Backend:
    """The same in all projects that the visitor sees."""
    return _of(_secret())


def sign_out() -> None:
    """End the visitor's session, here and on every other page of this browser."""
    backend().accounts.sign_out(_secret())
    forget()


def _secret() -> str:
    """That of the session in the visitor's cookie; none where nobody signs in."""
    settings = load_settings()
    if settings.sign_in is SignIn.OFF:
        return ""
    return st.context.cookies.get(cookie_name(settings), "")


def _within(secret: str, project: int | None) -> Backend:
    found = _of(secret)
    return found.acting(found.actor, project)


def _of(secret: str) -> Backend:
    everybodys = connected()
    return everybodys.acting(_actor(everybodys, secret))


def _actor(everybodys: Backend, secret: str) -> Actor:
    if everybodys.settings.sign_in is SignIn.OFF:
        return everybodys.actor
    actor = by_cookie(secret, everybodys) if secret else None
    if actor is None:
        raise SignedOut("you are signed out")
    return actor
