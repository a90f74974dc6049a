"""The Backend of this process, in the name of the visitor who asks it for something."""

import streamlit as st

from app import state
from app.api.connection import connected
from app.gate.visitors import by_cookie, cookie_name, forget
from backend.bootstrap import Backend
from backend.errors import StageflowError
from backend.people.rights import Actor
from backend.settings import Settings, SignIn, load_settings


class SignedOut(StageflowError):
    """The visitor's session has ended while the page was open."""

    advice = "Load the page again to sign in: you come back to where you are."


def backend() -> Backend:
    """The services in the visitor's name and in the project that they have chosen. Raises
    `SchemaOutdated` or `DatabaseUnreachable`, and asks again next time; `SignedOut` where the
    visitor's session is over."""
    found = visitor()
    return found.acting(found.actor, state.chosen_project())


def visitor() -> Backend:
    """The same in all projects that the visitor sees."""
    settings = load_settings()
    everybodys = connected()
    return everybodys.acting(_visitor(everybodys, settings))


def sign_out() -> None:
    """End the visitor's session, here and on every other page of this browser."""
    settings = load_settings()
    backend().accounts.sign_out(st.context.cookies.get(cookie_name(settings), ""))
    forget()


def _visitor(everybodys: Backend, settings: Settings) -> Actor:
    if settings.sign_in is SignIn.OFF:
        return everybodys.actor
    secret = st.context.cookies.get(cookie_name(settings), "")
    actor = by_cookie(secret, everybodys) if secret else None
    if actor is None:
        raise SignedOut("you are signed out")
    return actor
