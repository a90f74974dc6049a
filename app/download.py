"""A file fetched over HTTP onto the disk, in pieces; where it is cut off it goes on by `Range`."""

import glob
import hashlib
import os
import re
import time
from collections.abc import Callable, Mapping
from http.client import HTTPException, HTTPResponse
from pathlib import Path

from backend.errors import StageflowError

PIECE = 1 << 20
SHA256 = re.compile('"[0-9a-f]{64}"')
"""An ETag of the server's."""
TRIES = 5
"""Connections in a row that may end before they bring a byte."""
PAUSE = 1.0
"""Seconds before the next one."""

Open = Callable[[Mapping[str, str]], HTTPResponse]
"""Asks for the file with these headers; raises `OSError` where nobody answers."""


class DownloadDamaged(StageflowError):
    """What has come is not what its hash says."""

    advice = "Fetch it again; `stageflow doctor` on the server says whether its file is whole."


class DownloadCutOff(StageflowError):
    """Connections end before they bring anything."""

    advice = "Fetch it again: it goes on where it was cut off."


def fetch(ask: Open, path: Path) -> None:
    """Write the file to `path` once all of it is there and its SHA-256 is its ETag. Until then it
    is beside `path` under its hash, where a later call goes on. Raises `DownloadDamaged`,
    `DownloadCutOff`, `OSError` of the disk, and what `ask` raises."""
    part = _begun(path)
    if part is None or not _is_sound(part):  # a call may have ended before it could rename
        part = _brought(ask, path)
        if not _is_sound(part):
            part.unlink()
            raise DownloadDamaged(f"{path.name} has come with another hash than the server keeps")
    os.replace(part, path)


def _brought(ask: Open, path: Path) -> Path:
    """The part that is as long as the whole, after as many connections as that takes."""
    failures, reason = 0, "the connection ended"
    while True:
        before = _begun(path)
        size = before.stat().st_size if before else 0
        try:
            part, is_whole = _continued(ask, path, before)
            if is_whole:
                return part
        except (HTTPException, ConnectionError, TimeoutError) as fault:
            reason = str(fault) or type(fault).__name__
        now = _begun(path)
        moved = now is not None and (now != before or now.stat().st_size > size)
        failures = 0 if moved else failures + 1
        if failures == TRIES:
            raise DownloadCutOff(f"{path.name} was cut off {TRIES} times in a row: {reason}")
        time.sleep(0 if moved else PAUSE)


def _begun(path: Path) -> Path | None:
    """What an earlier connection has brought, of which the name says the hash of the whole."""
    return next(iter(sorted(path.parent.glob(f"{glob.escape(path.name)}.*.part"))), None)


def _continued(ask: Open, path: Path, before: Path | None) -> tuple[Path, bool]:
    """The part after one more connection, and whether it is the whole file."""
    size, headers = 0, dict[str, str]()
    if before is not None:
        size = before.stat().st_size
        headers = {"Range": f"bytes={size}-", "If-Range": f'"{_told(before)}"'} if size else {}
    with ask(headers) as answer:
        tag, length = answer.headers["ETag"], answer.headers["Content-Length"]
        if not length or not SHA256.fullmatch(tag or ""):
            raise HTTPException("the answer does not say the file's length and hash")
        if answer.status != 206 and before is not None:  # another file by now, or nothing was there
            before.unlink()
        part = path.with_name(f"{path.name}.{tag[1:-1]}.part")
        first = size if answer.status == 206 else 0
        total = first + int(length)
        with part.open("ab") as target:
            while piece := answer.read(PIECE):
                target.write(piece)
    return part, part.stat().st_size == total


def _told(part: Path) -> str:
    """The hash of the whole, as the server has told it."""
    return part.name.removesuffix(".part").rpartition(".")[2]


def _is_sound(part: Path) -> bool:
    with part.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == _told(part)
