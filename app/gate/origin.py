"""Names under which the server answers, and pages that may talk to it.

A foreign Host is DNS rebinding, a foreign Origin another site's page that uses the visitor's
cookie: neither gets further than here, on any route or websocket.
"""

from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from app.api.problems import Refused
from backend.settings import EVERYWHERE, LOOPBACK, Settings


def names(settings: Settings) -> frozenset[str]:
    """The host names that are answered; empty = all, where nothing says which."""
    found = set(LOOPBACK) if settings.is_local else {settings.host} - EVERYWHERE
    public = urlsplit(settings.public_url).hostname
    return frozenset(found | {public} if public else found)


def check(connection: HTTPConnection, settings: Settings) -> None:
    """Raises `Refused` for a foreign name or a foreign page."""
    host = connection.headers.get("host", "")
    answered = names(settings)
    if answered and _hostname(host) not in answered:
        raise Refused(
            403,
            f"the dashboard does not answer to the name {host[:100]!r}",
            "Open it under its own name, or set STAGEFLOW_PUBLIC_URL to the name that people use.",
        )
    origin = connection.headers.get("origin")
    if (origin is not None and urlsplit(origin).netloc != host) or _is_foreign(connection):
        raise Refused(
            403,
            f"a page of {(origin or 'another site')[:100]!r} may not use the dashboard",
            "A proxy has to pass the Host header on.",
        )


def _is_foreign(connection: HTTPConnection) -> bool:
    """A browser says that another site's page sends something; a link from there is harmless."""
    follows = connection.scope.get("method", "GET") in ("GET", "HEAD")
    return not follows and connection.headers.get("sec-fetch-site") == "cross-site"


def _hostname(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None
