"""Who may use the REST API where nobody signs in: who presents the token; without one, this
machine alone.

The token stands for everybody. Without it the server must be bound to a loopback address and
the request must come from this machine, not from a page of another site (Origin), under a
foreign name (DNS rebinding) or through a proxy.
"""

import hmac
from collections.abc import Mapping
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from app.api.problems import Refused
from backend.settings import LOOPBACK, Settings

FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
ADVICE = (
    "Set STAGEFLOW_API_TOKEN to a long random text where the dashboard runs, and send it as "
    "'Authorization: Bearer TOKEN'."
)


def admit(request: HTTPConnection, settings: Settings) -> None:
    """Raises `Refused` (401, 403) for whoever may not come in."""
    if settings.api_token:
        _check_token(request.headers, settings.api_token)
    else:
        _check_local(request, settings.host)


def _check_token(headers: Mapping[str, str], token: str) -> None:
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode()):
        return
    raise Refused(
        401,
        "the token is wrong" if given else "a token is needed",
        "Send STAGEFLOW_API_TOKEN as 'Authorization: Bearer TOKEN'.",
        {"WWW-Authenticate": "Bearer"},
    )


def _check_local(request: HTTPConnection, bound_to: str) -> None:
    if bound_to not in LOOPBACK:
        raise Refused(
            403, f"the dashboard listens on {bound_to} and no API token is configured", ADVICE
        )
    client = request.client.host if request.client else ""
    if client not in LOOPBACK or any(name in request.headers for name in FORWARDED):
        raise Refused(403, "without a token only this machine may use the API", ADVICE)
    host = request.headers.get("host", "")
    if urlsplit(f"//{host}").hostname not in LOOPBACK:
        raise Refused(403, f"the API does not answer to the name {host[:100]!r}", ADVICE)
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != host:
        raise Refused(403, f"a page of {origin[:100]!r} may not use the API", ADVICE)
