"""Settings as files of a folder: for secrets, which a variable would show to every process."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from backend.errors import InvalidInput

PREFIX = "STAGEFLOW_"
SECRETS = "STAGEFLOW_SECRETS"
"""A folder whose files `stageflow_<field>` give fields that no environment variable gives."""
LONGEST = 200
"""Characters of a faulty value that a message shows."""


def from_files(fields: Iterable[str]) -> dict[str, Any]:
    """Those of the fields that files give, and no variable. Raises `InvalidInput`."""
    folder = os.environ.get(SECRETS)
    if folder is None:
        return {}
    if not os.path.isdir(folder):  # Path.is_dir raises on a name that is too long
        raise InvalidInput(
            f"{SECRETS}={shown(folder)}: no such folder", f"Make it, or unset {SECRETS}."
        )
    given = {name.upper() for name in os.environ}
    left = [name for name in fields if f"{PREFIX}{name.upper()}" not in given]
    found = {name: _text(Path(folder) / f"{PREFIX.lower()}{name}") for name in left}
    return {name: text for name, text in found.items() if text is not None}


def _text(file: Path) -> str | None:
    """What a file of secrets holds; None where there is none."""
    try:
        text = file.read_text("utf-8").strip() if file.is_file() else None
    except (OSError, UnicodeDecodeError) as fault:
        why = "no UTF-8" if isinstance(fault, UnicodeDecodeError) else fault.strerror
    else:
        if text is None or "\0" not in text:
            return text
        why = "a zero byte in it"
    raise InvalidInput(
        f"{SECRETS}: {shown(file)} cannot be read: {why}", "Write one line of text into it."
    )


def shown(value: object) -> str:
    """Short, and of characters that every terminal takes."""
    text = str(value).encode(errors="backslashreplace").decode()
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
