"""The pages before the dashboard: sign in, and the first visit by invitation."""

from collections.abc import Awaitable, Callable
from functools import wraps
from urllib.parse import parse_qs, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from app.api.problems import answer
from app.api.reading import limited_body
from app.gate import form, oidc
from app.gate.rules import BACK, PROVIDER, SIGN_IN, WELCOME
from app.gate.visitors import address_of, cookie_name
from app.server.connection import connected
from backend.errors import InvalidInput, StageflowError
from backend.few_at_once import TooBusy
from backend.people.rights import Role
from backend.services.people.accounts import LIFE, AccountService, InvitationOver, SignInFailed
from backend.settings import Settings, SignIn, load_settings

MAX_FORM = 10_000
Answer = Callable[[Request, AccountService], Awaitable[Response]]


def sign_in_routes() -> list[BaseRoute]:
    """Open to everybody; where nobody signs in they lead to the dashboard."""
    return [
        Route(SIGN_IN, _route(_sign_in), methods=["GET", "POST"]),
        Route(PROVIDER, _route(_provider)),
        Route(BACK, _route(_back)),
        Route(WELCOME, _route(_welcome), methods=["GET", "POST"]),
    ]


def _route(handle: Answer) -> Callable[[Request], Awaitable[Response]]:
    @wraps(handle)
    async def inside(request: Request) -> Response:
        if load_settings().sign_in is SignIn.OFF:
            return RedirectResponse("/", status_code=303)
        try:
            backend = await run_in_threadpool(connected)
            return await handle(request, backend.accounts)
        except Exception as error:
            return answer(error)

    return inside


async def _sign_in(request: Request, accounts: AccountService) -> Response:
    target = inside_only(request.query_params.get("next", "/"))
    if request.method != "POST":
        return _page(form.sign_in(target, provider=_offered()))
    given = await _given(request)
    name, password = given.get("name", ""), given.get("password", "")
    try:
        secret = await run_in_threadpool(
            accounts.sign_in, name, password, _client(request), address_of(request)
        )
    except SignInFailed as error:
        return _page(form.sign_in(target, name, error, _offered()), 401)
    except TooBusy as error:
        return _page(form.sign_in(target, name, error, _offered()), 503)
    return _let_in(secret, target)


async def _provider(request: Request, _accounts: AccountService) -> Response:
    settings = load_settings()
    if not oidc.is_offered(settings):
        return RedirectResponse(SIGN_IN, status_code=303)
    target = inside_only(request.query_params.get("next", "/"))
    try:
        url, flow = await run_in_threadpool(oidc.begin, settings, target)
    except StageflowError as error:
        return _page(form.sign_in(target, "", error, _offered()), 503)
    response = RedirectResponse(url, status_code=303)
    _keep(response, _flow_cookie(settings), flow.text(), oidc.FLOW_LASTS, settings)
    return response


async def _back(request: Request, accounts: AccountService) -> Response:
    settings = load_settings()
    cookie = _flow_cookie(settings)
    newcomers = Role(settings.oidc_newcomers) if settings.oidc_newcomers else None
    try:
        flow = oidc.flow_of(request.cookies.get(cookie, ""))
        given = dict(request.query_params)
        who = await run_in_threadpool(oidc.finish, settings, flow, given)
        secret = await run_in_threadpool(accounts.sign_in_as, who, newcomers, _client(request))
    except StageflowError as error:
        return _page(form.sign_in("/", "", error, _offered()), 401)
    response = _let_in(secret, inside_only(flow.target))
    response.delete_cookie(cookie, secure=settings.is_secure, httponly=True)
    return response


def _offered() -> str:
    settings = load_settings()
    return oidc.provider_name(settings) if oidc.is_offered(settings) else ""


def _flow_cookie(settings: Settings) -> str:
    return f"{cookie_name(settings)}-flow"


async def _welcome(request: Request, accounts: AccountService) -> Response:
    link = request.query_params.get("link", "")
    try:
        invited = await run_in_threadpool(accounts.invitation, link)
    except InvitationOver as error:
        return _page(form.over(error), 410)
    if request.method != "POST":
        return _page(form.welcome(invited.name))
    given = await _given(request)
    name, password = given.get("name", ""), given.get("password", "")
    try:
        if password != given.get("again", ""):
            raise InvalidInput("the two passwords differ", "Type the same password twice.")
        secret = await run_in_threadpool(
            accounts.accept, link, name, password, _client(request), address_of(request)
        )
    except StageflowError as error:
        return _page(form.welcome(invited.name, name, error), 422)
    return _let_in(secret, "/")


def inside_only(target: str) -> str:
    """A path of this dashboard; "/" for whatever would lead elsewhere."""
    parts = urlsplit(target)
    plain = target.isprintable() and "\\" not in target and not target.startswith("//")
    local = not parts.scheme and not parts.netloc and target.startswith("/")
    return target if plain and local else "/"


async def _given(request: Request) -> dict[str, str]:
    """The form's fields. Raises `Refused` on what no form of ours sends."""
    body = await limited_body(request, MAX_FORM)
    fields = parse_qs(body.decode(errors="replace"), keep_blank_values=True, max_num_fields=10)
    return {name: values[0] for name, values in fields.items()}


def _client(request: Request) -> str:
    return request.headers.get("user-agent", "")


def _page(html: str, status: int = 200) -> Response:
    headers = {"Content-Security-Policy": form.POLICY, "Cache-Control": "no-store"}
    return HTMLResponse(html, status_code=status, headers=headers)


def _let_in(secret: str, target: str) -> Response:
    settings = load_settings()
    response = RedirectResponse(target, status_code=303)
    _keep(response, cookie_name(settings), secret, int(LIFE.total_seconds()), settings)
    return response


def _keep(response: Response, name: str, value: str, seconds: int, settings: Settings) -> None:
    response.set_cookie(
        name,
        value,
        max_age=seconds,
        path="/",
        secure=settings.is_secure,
        httponly=True,
        samesite="lax",
    )
