"""A backup into an empty home and database: all of it, checked, or nothing."""

import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO
from zipfile import BadZipFile, ZipFile

from alembic import command
from sqlalchemy import Connection, Table
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from backend.errors import InvalidInput, NotFound, first_line
from backend.hashing import copied, to_disk
from backend.settings import Settings
from backend.storage.backup import manifest as pages
from backend.storage.backup.archive import table_entry
from backend.storage.backup.layout import check_free, go_on_from, lay_out, snapshot
from backend.storage.backup.manifest import BackupDamaged, KeptFile, Manifest, read_manifest
from backend.storage.backup.rows import Sum, insert, names, of_line, rows_of, tables
from backend.storage.errors import StorageFull, of_system
from backend.storage.revision import known
from backend.storage.schema import configuration, whole
from backend.units import bytes_text

LONGEST = 2**30
"""Bytes of the longest line that is read: a batch of spans is some MiB."""
UNREADABLE = (BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError, RuntimeError)
"""What zipfile raises on a file that is damaged, encrypted or of another make."""
UNFIT = (SQLAlchemyError, TypeError, ValueError, OverflowError, RecursionError, InvalidInput)


def restore(settings: Settings, source: Path, replace: bool = False) -> Manifest:
    """Fill the settings' shared folder and database from `source` and bring it to today's schema.
    Raises `BackupDamaged`, `Occupied` (unless `replace`), `StorageFull`, `NotFound`; what was
    there is then as before."""
    if not source.is_file():
        raise NotFound(f"there is no file {source}")
    try:
        with _opened(source) as archive:
            manifest = _manifest(archive)
            with snapshot(settings) as connection:
                check_free(connection, settings, replace)
            with _unpacked(archive, manifest, settings.shared_folder) as folder:
                _fill(settings, archive, manifest, folder, replace)
    except OSError as fault:
        raise of_system(fault, str(source)) from fault
    return manifest


@contextmanager
def _opened(source: Path) -> Iterator[ZipFile]:
    try:
        with ZipFile(source) as archive:
            yield archive
    except UNREADABLE as fault:
        raise BackupDamaged(f"{source.name}: {first_line(fault)[:200]}") from None


def _manifest(archive: ZipFile) -> Manifest:
    if archive.getinfo(pages.NAME).file_size > pages.LARGEST:
        raise BackupDamaged(f"{pages.NAME} is larger than {bytes_text(pages.LARGEST)}")
    manifest = read_manifest(archive.read(pages.NAME))
    if manifest.revision not in known():
        raise BackupDamaged(
            f"the backup is at revision {manifest.revision[:20]!r}, which this Stageflow does "
            "not know",
            "It was made by a newer Stageflow: install that one.",
        )
    return manifest


@contextmanager
def _unpacked(archive: ZipFile, manifest: Manifest, shared: Path) -> Iterator[Path]:
    """The files in a folder within `shared`, each checked. The names are the manifest's, which
    lead nowhere else; what an entry of the archive says of links or rights counts for nothing."""
    shared.mkdir(parents=True, exist_ok=True, mode=0o700)
    size = sum(file.size for file in manifest.files.values())
    if size > (free := shutil.disk_usage(shared).free):
        raise StorageFull(
            f"{shared} has {bytes_text(free)} free, the files need {bytes_text(size)}"
        )
    with tempfile.TemporaryDirectory(prefix=".restore-", dir=shared) as place:
        for name, kept in manifest.files.items():
            target = Path(place) / name
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with archive.open(name) as packed, target.open("xb") as file:
                _copy(packed, file, name, kept)
        yield Path(place)


def _copy(packed: IO[bytes], file: IO[bytes], name: str, kept: KeptFile) -> None:
    """At most a byte more than the manifest says, whatever the archive expands to."""
    digest, size = copied(packed, file, kept.size)
    if (size, digest) != (kept.size, kept.sha256):
        raise BackupDamaged(f"{name} is not what was backed up: {size} bytes of {kept.size}")
    to_disk(file)


def _fill(
    settings: Settings, archive: ZipFile, manifest: Manifest, folder: Path, replace: bool
) -> None:
    with whole(settings) as connection:
        check_free(connection, settings, replace)
        lay_out(connection, manifest.revision)
        found = tables(connection)
        if (missing := {table.name for table in found} ^ manifest.tables.keys()) != set():
            raise BackupDamaged(f"{pages.NAME}: other tables than the schema's: {sorted(missing)}")
        for table in found:
            _fill_table(connection, archive, table, manifest)
        go_on_from(connection, dict(manifest.numbers))
        command.upgrade(configuration(connection), "head")
        _check_references(connection)
        for name in manifest.files:
            _put(folder / name, settings.shared_folder / name)


def _fill_table(connection: Connection, archive: ZipFile, table: Table, manifest: Manifest) -> None:
    kept = manifest.tables[table.name]
    if kept.columns != names(table):
        raise BackupDamaged(f"{table.name} has other columns than the schema's")
    try:
        with archive.open(table_entry(table.name)) as lines:
            read = iter(partial(lines.readline, LONGEST), b"")
            insert(connection, table, (of_line(line, table) for line in read))
        found = Sum().plus(rows_of(connection, table))
    except OperationalError:
        raise
    except UNFIT as fault:
        raise BackupDamaged(f"{table.name}: {first_line(fault)[:200]}") from None
    if found != kept.sum:
        raise BackupDamaged(
            f"{table.name}: {found.rows} rows of {kept.sum.rows} came back, or their values differ"
        )


def _check_references(connection: Connection) -> None:
    """PostgreSQL has checked each row; SQLite does when it is asked."""
    if connection.dialect.name != "sqlite":
        return
    broken = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
    if broken is not None:
        raise BackupDamaged(f"{broken[0]}: a row refers to one of {broken[2]} that is not there")


def _put(file: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    os.replace(file, target)
