"""What is asked of a request before FastAPI checks the types: known names, JSON, no huge number."""

from collections.abc import Sequence
from typing import Any

import orjson
from fastapi import Request
from starlette.concurrency import run_in_threadpool

from app.api.fields import MAX_ID
from app.api.problems import Refused
from backend.codec import keys
from backend.errors import InvalidInput, NotFound
from backend.units import bytes_text

JSON = "application/json"
MAX_BODY = 8 * 1024 * 1024
MAX_NUMBER = 2**63
MAX_DEPTH = 100
"""Lists and objects of a body in each other."""


class Parsed(Request):
    """A request whose body has been read: `data`, which means `plain`."""

    def __init__(self, request: Request, data: bytes, plain: Any) -> None:
        super().__init__(request.scope, request.receive)
        self._data, self._plain = data, plain

    async def body(self) -> bytes:
        return self._data

    async def json(self) -> Any:
        return self._plain


async def checked(request: Request, parameters: Sequence[str], body: Any) -> Request:
    """`request`, its body read if it is to be of the dataclass `body`. `parameters` are the names
    that its query may hold. Raises `NotFound`, `InvalidInput` and `Refused` (400, 413, 415)."""
    for value in request.path_params.values():
        if isinstance(value, int) and not 0 < value <= MAX_ID:
            raise NotFound(f"{value} is not an id", f"Ids go from 1 to {MAX_ID}.")
    for name in request.query_params:
        if name not in parameters:
            known = ", ".join(parameters) or "none"
            raise InvalidInput(f"no parameter {name[:100]!r}", f"Known parameters: {known}.")
    return request if body is None else await _parsed(request, body)


async def _parsed(request: Request, body: type) -> Parsed:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise Refused(415, f"the body must be {JSON}", f"Send 'Content-Type: {JSON}'.")
    data = await limited_body(request, MAX_BODY)
    return Parsed(request, data, await run_in_threadpool(_plain, data, body))


def _plain(data: bytes, body: type) -> Any:
    """Half a second for the largest body: not in the thread that answers everybody."""
    try:
        plain = orjson.loads(data)
    except orjson.JSONDecodeError as fault:
        raise Refused(400, f"the body is not JSON: {fault}", "Send one JSON object.") from None
    _check_fields(body, plain)
    _check_values(plain)
    return plain


async def limited_body(request: Request, most: int) -> bytes:
    """The body of at most so many bytes. Raises `Refused` (413)."""
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > most:
            raise Refused(413, f"the body is larger than {bytes_text(most)}", "Send less.")
    return bytes(data)


def _check_fields(kind: type, plain: Any) -> None:
    """A misspelt field is an error, not a default."""
    if not isinstance(plain, dict):
        raise InvalidInput("the body is not a JSON object", "Send one with the documented fields.")
    known = keys(kind)
    for name in plain:
        if name not in known:
            raise InvalidInput(f"no field {name[:100]!r}", f"Known fields: {', '.join(known)}.")


def _check_values(plain: Any, depth: int = 0) -> None:
    """No database takes larger numbers, and no function that calls itself a deeper nesting."""
    if depth > MAX_DEPTH:
        raise InvalidInput(f"the body has more than {MAX_DEPTH} nested lists or objects")
    match plain:
        case dict():
            for value in plain.values():
                _check_values(value, depth + 1)
        case list():
            for value in plain:
                _check_values(value, depth + 1)
        case int() | float() if abs(plain) >= MAX_NUMBER:
            raise InvalidInput(f"{plain:g} is too large", "Give a number below 2^63.")
