"""Frozen dataclasses to JSON and back, validated on the way in."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, TypeVar

from pydantic import TypeAdapter, ValidationError

from backend.errors import InvalidInput

T = TypeVar("T")


_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


def to_json(kind: Any, value: object) -> bytes:
    """Encode `value`, which is of type `kind`, as compact JSON."""
    return _adapter(kind).dump_json(value)


def to_plain(kind: Any, value: object) -> Any:
    """Encode `value` as dicts, lists, strings and numbers (for a JSON column)."""
    return _adapter(kind).dump_python(value, mode="json")


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


def schemas(
    kinds: Mapping[str, tuple[Any, Literal["validation", "serialization"]]], place: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """JSON schemas by the keys of `kinds` (a type that comes in, or goes out), and the
    definitions to which they refer; `place` is where these are put, "#/$defs/{model}"."""
    asked = [(key, mode, _adapter(kind)) for key, (kind, mode) in kinds.items()]
    found, rest = TypeAdapter.json_schemas(asked, ref_template=place)
    return {key: schema for (key, _), schema in found.items()}, rest.get("$defs", {})


def _first(fault: ValidationError) -> str:
    error = fault.errors()[0]
    place = ".".join(str(part) for part in error["loc"]) or "value"
    return f"{place}: {error['msg']}"
