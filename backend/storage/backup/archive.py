"""A backup: one zip file with every row and every kept file of one moment."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from sqlalchemy import Connection, Table

from backend.errors import InvalidInput
from backend.hashing import copied, to_disk
from backend.settings import Settings
from backend.storage.backup.kept_files import BackupSource, moment
from backend.storage.backup.layout import next_numbers
from backend.storage.backup.manifest import (
    FORMAT,
    NAME,
    KeptFile,
    KeptTable,
    Manifest,
    write_manifest,
)
from backend.storage.backup.rows import Sum, names, rows_of, tables, to_line
from backend.storage.errors import SchemaOutdated, of_system
from backend.storage.revision import revision_of


def back_up(settings: Settings, target: Path, version: str) -> Manifest:
    """Write everything that SQL and the shared folder keep to `target`, a new file that its owner
    alone may read; `version` is this Stageflow's. Whoever works goes on meanwhile.
    Raises `InvalidInput` where `target` is there, `SchemaOutdated` on an empty database,
    `StorageFull`, `DatabaseUnreachable`."""
    if target.exists():
        raise InvalidInput(f"{target} is there already", "Name a file that is not there yet.")
    try:
        with _new_file(target) as file, ZipFile(file, "w") as archive, moment(settings) as now:
            manifest = _write(archive, now, version)
    except OSError as fault:
        raise of_system(fault, str(target)) from fault
    return manifest


def _write(archive: ZipFile, now: BackupSource, version: str) -> Manifest:
    revision = revision_of(now.connection)
    if revision is None:
        raise SchemaOutdated("there are no tables yet", "There is nothing to back up.")
    found = {t.name: _write_table(archive, now.connection, t) for t in tables(now.connection)}
    files = {n: _write_file(archive, now.folder, n) for n in now.files if n not in now.missing}
    manifest = Manifest(
        format=FORMAT,
        version=version,
        revision=revision,
        created_at=datetime.now(UTC).isoformat(),
        tables=found,
        numbers=next_numbers(now.connection),
        files=files,
        missing=tuple(n for n, file in now.files.items() if files.get(n) != file),
    )
    archive.writestr(_entry(NAME, ZIP_DEFLATED), write_manifest(manifest))
    return manifest


def table_entry(name: str) -> str:
    """The archive's entry of a table."""
    return f"tables/{name}.jsonl"


def _write_table(archive: ZipFile, connection: Connection, table: Table) -> KeptTable:
    total = Sum()
    with archive.open(_entry(table_entry(table.name), ZIP_DEFLATED), "w", force_zip64=True) as out:
        for row in rows_of(connection, table):
            total = total.plus([row])
            out.write(to_line(row) + b"\n")
    return KeptTable(names(table), total)


def _write_file(archive: ZipFile, folder: Path, name: str) -> KeptFile:
    """What was really there: a damaged file stays what it is."""
    entry = _entry(name, ZIP_STORED)
    with (folder / name).open("rb") as file, archive.open(entry, "w", force_zip64=True) as out:
        digest, size = copied(file, out)
    return KeptFile(size, digest)


def _entry(name: str, compression: int) -> ZipInfo:
    entry = ZipInfo(name, datetime.now(UTC).timetuple()[:6])
    entry.compress_type = compression
    entry.external_attr = 0o600 << 16
    return entry


@contextmanager
def _new_file(target: Path) -> Iterator[IO[bytes]]:
    """It has its name only once it is whole, and on the disk."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")  # mode 600
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            to_disk(file)
        os.replace(name, target)
    finally:
        Path(name).unlink(missing_ok=True)
