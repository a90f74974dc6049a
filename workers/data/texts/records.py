"""Texts with the place that they come from, so that an error names it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workers.data.errors import DataFailed


@dataclass(frozen=True, slots=True)
class TextRecord:
    """`where` is such as "train.jsonl, line 17"."""

    fields: Mapping[str, Any]
    where: str

    def value(self, name: str) -> Any:
        """Raises `DataFailed` where it has no such field, or nothing in it."""
        if self.fields.get(name) is None:
            has = ", ".join(key for key, value in self.fields.items() if value is not None)
            raise DataFailed(
                f"{self.where} has no field {name!r}: it has {has or 'none'}",
                "Correct this one, or choose another field as inputs or targets.",
            )
        return self.fields[name]

    def text(self, name: str) -> str:
        """Raises `DataFailed` where the field is no text."""
        found = self.value(name)
        if not isinstance(found, str):
            raise DataFailed(
                f"{self.where}: {name!r} is {_kind(found)}, not a text",
                "Write it as a text, or choose another field.",
            )
        return found


def read_lines(files: Sequence[Path]) -> list[TextRecord]:
    """The objects of JSON lines, one a line; empty lines do not count. Raises `DataFailed`."""
    found = [record for file in files for record in _of(file)]
    if not found:
        names = ", ".join(file.name for file in files)
        raise DataFailed(f"{names} has no line with an object", 'Give lines like {"text": "..."}.')
    return found


def _of(file: Path) -> list[TextRecord]:
    try:
        lines = file.read_bytes().split(b"\n")
    except OSError as fault:
        raise DataFailed(f"{file.name} cannot be read: {fault.strerror}") from None
    return [
        TextRecord(_object(line, f"{file.name}, line {number}"), f"{file.name}, line {number}")
        for number, line in enumerate(lines, start=1)
        if line.strip()
    ]


def _object(line: bytes, where: str) -> Mapping[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as fault:
        raise DataFailed(
            f"{where} is not JSON: {fault}", "Write one object a line, in UTF-8."
        ) from None
    if not isinstance(found, dict):
        raise DataFailed(
            f"{where} is {_kind(found)}, not an object", 'Write it like {"text": "..."}.'
        )
    return found


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "a truth value"}
    return kinds.get(type(value), "nothing" if value is None else "a number")
