"""Files copied with their SHA-256."""

import hashlib
import os
from math import inf
from typing import IO

CHUNK = 1 << 20


def copied(source: IO[bytes], target: IO[bytes], most: float = inf) -> tuple[str, int]:
    """Copy the file; the SHA-256 (hex) and the bytes of it. Stops a byte beyond `most`."""
    digest, size = hashlib.sha256(), 0
    while chunk := source.read(int(min(CHUNK, most + 1 - size))):
        digest.update(chunk)
        size += target.write(chunk)
    return digest.hexdigest(), size


def to_disk(file: IO[bytes]) -> None:
    """Let all that was written reach the disk."""
    file.flush()
    os.fsync(file.fileno())
