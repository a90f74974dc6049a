"""Files of runs: bytes in a folder under their SHA-256, names in SQL."""

import fcntl
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path

from sqlalchemy import delete, select

from backend.errors import NotFound
from backend.hashing import counted, to_disk
from backend.runs.attempts.fence import Fence
from backend.runs.history.records import TRAINED_INDEX, TRAINED_MODEL, StoredArtifact
from backend.storage.database import Database
from backend.storage.errors import NO_ROOM, FolderUnusable, of_system
from backend.storage.fence import held, hold_once
from backend.storage.tables.tables import ArtifactRow


class SqlArtifacts:
    """`folder` is made when the first file comes."""

    def __init__(self, database: Database, folder: Path) -> None:
        self._database = database
        self._folder = folder

    def add(
        self, fence: Fence, name: str, path: Path, batch: int = 0, most: float = inf
    ) -> StoredArtifact:
        """Keep a copy of the file; an older one of that name in the run is replaced. Raises
        `FileGrew` where it has more than `most` bytes, `StorageFull` on a full disk,
        `FolderUnusable` where the folder cannot be written, `NotFound` where there is no such
        file."""
        if not path.is_file():
            raise NotFound(f"there is no file {path} to keep as {name!r}")
        with held(self._database, fence):
            pass  # a lost lease is told before the copying
        with _copied(path, self._folder, most) as (copy, digest, size), _locked(self._folder):
            os.replace(copy, self._folder / digest)
            with self._database.write() as session:
                hold_once(session, fence, batch)
                same = (ArtifactRow.run_id == fence.run_id, ArtifactRow.name == name)
                session.execute(delete(ArtifactRow).where(*same))
                session.add(ArtifactRow(run_id=fence.run_id, name=name, size=size, digest=digest))
        return StoredArtifact(name, self._folder / digest, size, digest)

    def list(self, run_id: int) -> Sequence[StoredArtifact]:
        """By name."""
        query = select(ArtifactRow).where(ArtifactRow.run_id == run_id).order_by(ArtifactRow.name)
        return [
            StoredArtifact(row.name, self._folder / row.digest, row.size, row.digest)
            for row in self._database.rows(query)
        ]

    def with_trained_model(self, run_ids: Sequence[int]) -> set[int]:
        """Those of the runs that have left a trained model."""
        is_one = ArtifactRow.name.in_((TRAINED_MODEL, TRAINED_INDEX))
        query = select(ArtifactRow).where(ArtifactRow.run_id.in_(run_ids), is_one)
        return {row.run_id for row in self._database.rows(query)}

    def trained_model(self, run_id: int) -> Sequence[StoredArtifact]:
        """The run's trained model: its only file, or its index and its shards. Raises
        `NotFound`."""
        kept = {artifact.name: artifact for artifact in self.list(run_id)}
        if TRAINED_MODEL in kept or TRAINED_INDEX not in kept:
            return [self.get(run_id, TRAINED_MODEL)]
        return [
            artifact
            for name, artifact in kept.items()
            if name == TRAINED_INDEX or (name.endswith(".safetensors") and Path(name).name == name)
        ]

    def get(self, run_id: int, name: str) -> StoredArtifact:
        """One kept file. Raises `NotFound`."""
        for artifact in self.list(run_id):
            if artifact.name == name:
                return artifact
        raise NotFound(f"run {run_id} has no file {name!r}")

    def path(self, run_id: int, name: str) -> Path:
        """Where one kept file lies. Raises `NotFound`."""
        return self.get(run_id, name).path

    def prune(self, digests: Sequence[str]) -> None:
        """Delete the bytes of these files, as far as no run has them any more. Raises
        `FolderUnusable` where the folder cannot be changed."""
        if not digests or not self._folder.is_dir():
            return
        every = ArtifactRow.__table__  # those of other projects too
        query = select(every.c.digest).where(every.c.digest.in_(digests))
        with _locked(self._folder):
            for digest in set(digests) - {*self._database.rows(query)}:
                (self._folder / digest).unlink(missing_ok=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One process at a time: a file appears together with its row, or is deleted."""
    with _on_disk(folder):
        handle = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


@contextmanager
def _copied(path: Path, folder: Path, most: float) -> Iterator[tuple[Path, str, int]]:
    """A whole copy of `path` in `folder`, to be renamed; its SHA-256 and bytes. It is deleted
    at the end if it is still there."""
    with _on_disk(folder):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=folder, prefix=".unfinished-")
        copy = Path(name)
        try:
            os.fchmod(handle, 0o644)  # a later run's ranks may be shown it; the folder is closed
            with os.fdopen(handle, "wb") as target, path.open("rb") as source:
                digest, size = counted(source, target, most)
                to_disk(target)
            yield copy, digest, size
        finally:
            copy.unlink(missing_ok=True)


@contextmanager
def _on_disk(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as fault:
        if fault.errno in NO_ROOM:
            raise of_system(fault, str(folder)) from fault
        raise FolderUnusable(f"{fault.filename or folder}: {fault.strerror}") from fault
