"""Files of runs: bytes in a folder under their SHA-256, names in SQL."""

import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import delete, select

from backend.errors import NotFound
from backend.runs.fence import Fence
from backend.runs.records import StoredArtifact
from backend.storage.database import Database
from backend.storage.errors import of_system
from backend.storage.fence import hold
from backend.storage.tables import ArtifactRow

CHUNK = 1 << 20


class SqlArtifacts:
    """`folder` is made when the first file comes."""

    def __init__(self, database: Database, folder: Path) -> None:
        self._database = database
        self._folder = folder

    def add(self, fence: Fence, name: str, path: Path) -> StoredArtifact:
        """Raises `StorageFull` on a full disk, `NotFound` where there is no such file,
        `LeaseLost` as every fenced write."""
        if not path.is_file():
            raise NotFound(f"there is no file {path} to keep as {name!r}")
        with self._database.write() as session:
            hold(session, fence)
        try:
            digest, size = _keep(path, self._folder)
        except OSError as fault:
            raise of_system(fault, str(self._folder)) from fault
        with self._database.write() as session:
            hold(session, fence)
            session.execute(
                delete(ArtifactRow).where(
                    ArtifactRow.run_id == fence.run_id, ArtifactRow.name == name
                )
            )
            session.add(ArtifactRow(run_id=fence.run_id, name=name, size=size, digest=digest))
        return StoredArtifact(name, self._folder / digest, size, digest)

    def list(self, run_id: int) -> Sequence[StoredArtifact]:
        query = select(ArtifactRow).where(ArtifactRow.run_id == run_id).order_by(ArtifactRow.name)
        with self._database.read() as session:
            return [
                StoredArtifact(row.name, self._folder / row.digest, row.size, row.digest)
                for row in session.scalars(query)
            ]


def _keep(path: Path, folder: Path) -> tuple[str, int]:
    """Copy `path` to `folder` under its SHA-256: whole or not at all. (digest, bytes)"""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, unfinished = tempfile.mkstemp(dir=folder, prefix=".unfinished-")
    try:
        with os.fdopen(handle, "wb") as copy, path.open("rb") as original:
            digest, size = hashlib.sha256(), 0
            while chunk := original.read(CHUNK):
                digest.update(chunk)
                size += copy.write(chunk)
            copy.flush()
            os.fsync(copy.fileno())
        os.replace(unfinished, folder / digest.hexdigest())
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise
    return digest.hexdigest(), size
