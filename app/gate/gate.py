"""The one gate in front of every route: pages, websockets, uploads, media, measures, API."""

from collections.abc import Callable
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.caller import ACTOR
from app.api.problems import Refused, answer
from app.gate import origin
from app.gate.headers import guarded
from app.gate.offers import Offers
from app.gate.rate_limit import RateLimit
from app.gate.rules import SIGN_IN, AccessRule, rule_for
from app.gate.visitors import actor_of, address_of, is_by_token
from backend.bootstrap import Backend
from backend.people.rights import Actor
from backend.settings import Settings, load_settings

POLICY_VIOLATION = 1008
"""A websocket's closing code, RFC 6455 section 7.4.1."""
STRANGERS = 60
"""A minute: times that one address may try to sign in, and be told that it has not."""
SIGN_IN_FIRST = (
    "Sign in on the dashboard, or send a token of yours as 'Authorization: Bearer TOKEN'."
)


class Gate:
    """ASGI middleware; outermost, so that nothing is read of whoever may not come in."""

    def __init__(self, app: ASGIApp, connect: Callable[[], Backend]) -> None:
        self._app = app
        self._connect = connect
        self._callers, self._strangers = RateLimit(), RateLimit()
        self._offers = Offers()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        send = guarded(send)
        try:
            scope[ACTOR] = actor = await self._admitted(HTTPConnection(scope))
        except Exception as error:
            return await _refuse(error, scope, receive, send)
        if scope["type"] == "websocket" and actor is not None:
            send = self._offers.heard(send, actor.name)
        return await self._app(scope, receive, send)

    async def _admitted(self, connection: HTTPConnection) -> Actor | None:
        settings = load_settings()
        if not connection.scope["path"].isprintable():  # patterns of routes end at a line's end
            raise Refused(404, "the path contains a control character", "Correct the address.")
        rule = rule_for(connection.url.path)
        if rule is AccessRule.HEALTH:
            return None
        if not is_by_token(connection, rule, settings):
            origin.check(connection, settings)  # a browser adds cookies by itself, not tokens
        if rule is AccessRule.OPEN:
            if connection.scope.get("method") == "POST":
                self._strangers.take(address_of(connection), min(STRANGERS, settings.rate))
            return None
        actor = await run_in_threadpool(self._who, connection, rule, settings)
        if actor is None:
            self._strangers.take(address_of(connection), min(STRANGERS, settings.rate))
            raise Refused(401, "sign in first", SIGN_IN_FIRST, {"WWW-Authenticate": "Bearer"})
        if rule is AccessRule.PROGRAM:
            self._callers.take(actor.name, settings.rate)
        self._offers.check(actor.name, connection.scope["path"])
        return actor

    def _who(
        self, connection: HTTPConnection, rule: AccessRule, settings: Settings
    ) -> Actor | None:
        return actor_of(connection, rule, self._connect, settings)


async def _refuse(error: Exception, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": POLICY_VIOLATION})
        return
    await _refusal(error, HTTPConnection(scope))(scope, receive, send)


def _refusal(error: Exception, connection: HTTPConnection) -> Response:
    """A person who only follows a link is led to the sign-in and back."""
    wants_page = "text/html" in connection.headers.get("accept", "")
    follows = (
        connection.scope["method"] == "GET" and rule_for(connection.url.path) is AccessRule.PERSON
    )
    if isinstance(error, Refused) and error.status == 401 and wants_page and follows:
        target = connection.url.path
        if connection.url.query:
            target += f"?{connection.url.query}"
        return RedirectResponse(f"{SIGN_IN}?next={quote(target, safe='')}", status_code=303)
    return answer(error)
