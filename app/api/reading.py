"""A request's path, query and body, checked and typed before any service sees them."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_origin, get_type_hints

import orjson
from starlette.requests import Request

from app.api.fields import MAX_ID
from app.api.operation import JSON, Operation
from app.api.problems import Refused
from backend.codec import from_json, from_plain
from backend.errors import InvalidInput, NotFound

MAX_BODY = 8 * 1024 * 1024
MAX_NUMBER = 2**63


def read_path(request: Request) -> Mapping[str, Any]:
    """Raises `NotFound` on a number that nothing can have."""
    for value in request.path_params.values():
        if isinstance(value, int) and not 0 < value <= MAX_ID:
            raise NotFound(f"there is no number {value}", f"Ids go from 1 to {MAX_ID}.")
    return request.path_params


def read_query(operation: Operation, request: Request) -> Any:
    """The query as the operation's type. Raises `InvalidInput` naming the parameter."""
    kinds = get_type_hints(operation.query)
    given: dict[str, Any] = {}
    for name, value in request.query_params.multi_items():
        if name not in kinds:
            known = ", ".join(kinds) or "none"
            raise InvalidInput(f"no parameter {name[:100]!r}", f"There are: {known}.")
        if get_origin(kinds[name]) is tuple:
            given.setdefault(name, []).append(value)
        else:
            given[name] = value
    return from_plain(operation.query, given)


async def read_body(operation: Operation, request: Request) -> Any:
    """The body as the operation's type. Raises `Refused` (400, 413, 415) and `InvalidInput`."""
    if operation.body is None:
        return None
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise Refused(415, f"the body must be {JSON}", f"Send 'Content-Type: {JSON}'.")
    data = await _limited(request)
    try:
        plain = orjson.loads(data)
    except orjson.JSONDecodeError as fault:
        raise Refused(400, f"the body is no JSON: {fault}", "Send one JSON object.") from None
    _check_fields(operation.body, plain)
    _check_numbers(plain)
    return from_json(operation.body, data)


async def _limited(request: Request) -> bytes:
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > MAX_BODY:
            raise Refused(413, f"the body is larger than {MAX_BODY:,} bytes", "Send less.")
    return bytes(data)


def _check_fields(kind: type, plain: Any) -> None:
    """A misspelt field is an error, not a default."""
    if not isinstance(plain, dict):
        raise InvalidInput("the body is no JSON object", "Send one with the documented fields.")
    known = [field.name for field in fields(kind)]
    for name in plain:
        if name not in known:
            raise InvalidInput(f"no field {name[:100]!r}", f"There are: {', '.join(known)}.")


def _check_numbers(plain: Any) -> None:
    """No database takes larger ones."""
    match plain:
        case dict():
            for value in plain.values():
                _check_numbers(value)
        case list():
            for value in plain:
                _check_numbers(value)
        case int() | float() if abs(plain) >= MAX_NUMBER:
            raise InvalidInput(f"{plain:g} is too large", "Give a number below 2^63.")
