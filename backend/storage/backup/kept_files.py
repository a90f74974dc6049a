"""The files that the rows of a moment name, held as they are while they are copied."""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, select

from backend.settings import Settings
from backend.storage.backup.layout import snapshot
from backend.storage.backup.manifest import PLACES, KeptFile
from backend.storage.backup.rows import tables

TRIES = 3
"""A training lets go of its oldest checkpoint at any time: a moment in which a file has just
gone is not taken, unless it is gone for good."""


@dataclass(frozen=True, slots=True)
class BackupSource:
    """Rows, and where the files that they name are held; `missing` are not there at all."""

    connection: Connection
    folder: Path
    files: Mapping[str, KeptFile]
    missing: tuple[str, ...]


@contextmanager
def moment(settings: Settings) -> Iterator[BackupSource]:
    """Rows and files that belong together, while everybody goes on."""
    shared = settings.shared_folder
    shared.mkdir(parents=True, exist_ok=True, mode=0o700)
    for number in range(1, TRIES + 1):
        with (
            tempfile.TemporaryDirectory(prefix=".backup-", dir=shared) as place,
            snapshot(settings) as connection,
        ):
            named = dict(_named(connection))
            missing = tuple(n for n in named if not _hold(shared, Path(place), n))
            if not missing or number == TRIES:
                yield BackupSource(connection, Path(place), named, missing)
                return


def _named(connection: Connection) -> Iterator[tuple[str, KeptFile]]:
    by_name = {table.name: table.c for table in tables(connection)}
    if artifacts := by_name.get("artifacts"):
        for digest, size in connection.execute(select(artifacts.digest, artifacts.size).distinct()):
            yield f"artifacts/{digest}", KeptFile(size, digest)
    if not (checkpoints := by_name.get("checkpoints")):
        return
    query = select(checkpoints.run_id, checkpoints.attempt, checkpoints.step, checkpoints.files)
    for run_id, attempt, step, files in connection.execute(query):
        for file in files:
            place = f"checkpoints/{run_id}/{attempt}-{step}/{file['name']}"
            yield place, KeptFile(file["size"], file["sha256"])


def _hold(shared: Path, folder: Path, name: str) -> bool:
    """A second name for the file, which lasts whoever deletes the first; False = not there."""
    if not PLACES.fullmatch(name):
        return False
    held = folder / name
    held.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(shared / name, held, follow_symlinks=True)
    except FileNotFoundError:
        return False
    except OSError as fault:
        if fault.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP):
            raise
        shutil.copyfile(shared / name, held)
    return True
