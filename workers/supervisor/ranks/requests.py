"""What the supervisor asks of the ranks: empty files in their folder, for which they look."""

import os
from contextlib import suppress
from pathlib import Path

SAVE_NOW = "save-now"
"""Asks for a checkpoint (`workers.runtime.checkpoint`)."""


def request(folder: Path, name: str) -> None:
    """Put the file there; no link that the ranks laid is followed, and what they put there
    themselves stays."""
    flags = os.O_CREAT | os.O_WRONLY | os.O_EXCL | os.O_NOFOLLOW
    with suppress(FileExistsError):
        os.close(os.open(folder / name, flags, 0o644))
