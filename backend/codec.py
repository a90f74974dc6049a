"""Frozen dataclasses to JSON and back, validated on the way in.

A field whose stored key is an older word states it as its alias.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from backend.errors import InvalidInput

T = TypeVar("T")


_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


def to_json(kind: Any, value: object) -> bytes:
    """Encode `value`, which is of type `kind`, as compact JSON."""
    return _adapter(kind).dump_json(value, by_alias=True)


def to_plain(kind: Any, value: object) -> Any:
    """Encode `value` as dicts, lists, strings and numbers (for a JSON column)."""
    return _adapter(kind).dump_python(value, mode="json", by_alias=True)


def from_json(kind: type[T] | Any, data: bytes | str) -> T:
    """Decode JSON into `kind`; raises `InvalidInput` naming the first faulty field."""
    try:
        return _adapter(kind).validate_json(data)  # type: ignore[no-any-return]
    except ValidationError as fault:
        raise InvalidInput(_first(fault)) from None


def from_plain(kind: type[T] | Any, data: object) -> T:
    """Decode what `to_plain` gave; raises `InvalidInput` naming the first faulty field."""
    try:
        return _adapter(kind).validate_python(data)  # type: ignore[no-any-return]
    except ValidationError as fault:
        raise InvalidInput(_first(fault)) from None


def num_values(text: bytes) -> int:
    """At least as many as the JSON `text` has, known before it is parsed: each takes up to a
    hundred bytes of memory then, and two of the text are enough for one."""
    return 1 + sum(text.count(mark) for mark in (b",", b"[", b"{"))


@cache
def keys(kind: Any) -> tuple[str, ...]:
    """The keys that the JSON of a dataclass has."""
    return tuple(_adapter(kind).json_schema()["properties"])


def first_error(errors: Sequence[Any]) -> Any:
    """The first of a validation's errors that concerns what was meant: of a union the members
    whose `kind` is another one are left out."""
    others = [
        error["loc"][:-1]
        for error in errors
        if error["type"] == "literal_error" and error["loc"][-1:] == ("kind",)
    ]
    meant = (e for e in errors if not any(e["loc"][: len(other)] == other for other in others))
    return next(meant, errors[0])


def _first(fault: ValidationError) -> str:
    error = first_error(fault.errors())
    place = ".".join(str(part) for part in error["loc"]) or "value"
    return f"{place}: {error['msg']}"
