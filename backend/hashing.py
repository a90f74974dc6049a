"""Files copied with their SHA-256."""

import hashlib
import os
from math import inf
from typing import IO

from backend.errors import StageflowError

CHUNK = 1 << 20


class FileGrew(StageflowError):
    """Somebody writes on in a file that is being copied."""

    advice = "Announce a file when it is complete."


def copied(source: IO[bytes], target: IO[bytes], most: float = inf) -> tuple[str, int]:
    """Copy the file; the SHA-256 (hex) and the bytes of it. Stops a byte beyond `most`."""
    digest, size = hashlib.sha256(), 0
    while chunk := source.read(int(min(CHUNK, most + 1 - size))):
        digest.update(chunk)
        size += target.write(chunk)
    return digest.hexdigest(), size


def counted(source: IO[bytes], target: IO[bytes], most: float) -> tuple[str, int]:
    """`copied` of a file that had `most` bytes when it was counted. Raises `FileGrew` where it has
    more by now."""
    digest, size = copied(source, target, most)
    if size > most:
        raise FileGrew(f"the file had {most:,.0f} bytes, and has more while it is copied")
    return digest, size


def to_disk(file: IO[bytes]) -> None:
    """Let all that was written reach the disk."""
    file.flush()
    os.fsync(file.fileno())
