"""`stageflow db`, `backup`, `restore` and `move`: the database's schema, and everything stored."""

from pathlib import Path
from typing import Annotated

import typer

from app import formats
from app.terminal import out, print_table, warn
from app.version import stageflow_version
from backend.settings import load_settings
from backend.storage import revision, schema
from backend.storage.backup.archive import back_up
from backend.storage.backup.manifest import Manifest
from backend.storage.backup.moving import move as move_rows
from backend.storage.backup.restoring import restore as restore_from

Replace = Annotated[bool, typer.Option("--replace", help="Overwrite what is in that database now.")]
app = typer.Typer(help="The database: its schema revision and upgrades.", no_args_is_help=True)


def backup(file: Annotated[Path, typer.Argument(help="A file that is not there yet.")]) -> None:
    """Write every row, artifact and checkpoint to one file, while everything goes on.

    It holds password hashes and people's models: its owner alone may read it.

    Examples:

        stageflow backup /backups/monday.zip
    """
    manifest = back_up(load_settings(), file, stageflow_version())
    out.print(f"{file}: {_told(manifest)}, {formats.size(file.stat().st_size)}")
    _warn(manifest)


def restore(
    file: Annotated[Path, typer.Argument(help="What `stageflow backup` wrote.")],
    replace: Replace = False,
) -> None:
    """Fill an empty home and database from a backup, and bring it to this version's schema.

    Every row and file is checked first; a fault changes nothing. The backup may be from SQLite
    and go to PostgreSQL, or the other way.

    Examples:

        STAGEFLOW_HOME=/srv/new stageflow restore /backups/monday.zip
    """
    manifest = restore_from(load_settings(), file, replace)
    out.print(f"Restored {_told(manifest)}, as of {manifest.created_at}")
    _warn(manifest)


def move(
    to: Annotated[str, typer.Option("--to", help="URL of the other database.")],
    replace: Replace = False,
) -> None:
    """Copy the database into another one: all of it, counted and compared, or nothing.

    The old database is not changed. Stop the dashboard and the agents first.

    Examples:

        stageflow move --to postgresql://stageflow@db.example.org/stageflow
    """
    moved = move_rows(load_settings(), to, replace)
    print_table("", ["table", "rows"], [[name, kept.rows] for name, kept in moved.items()])
    out.print(
        "Compared: every row is there. Set STAGEFLOW_DATABASE_URL to the new database, on every "
        "machine."
    )


def _told(manifest: Manifest) -> str:
    rows = sum(table.sum.rows for table in manifest.tables.values())
    counted = formats.count(len(manifest.files), "file")
    return f"{formats.count(rows, 'row')}, {counted}, schema {manifest.revision}"


def _warn(manifest: Manifest) -> None:
    for name in manifest.missing:
        warn(f"{name} was missing or damaged when the backup was taken")


@app.command()
def upgrade() -> None:
    """Bring the database to this version's schema. Nothing that is stored is lost."""
    settings = load_settings()
    before, _ = revision.current(settings)
    after = schema.upgrade(settings)
    out.print(f"database: {before or 'empty'} -> {after}")


@app.command()
def current() -> None:
    """Print the database's revision and the one that this version needs."""
    now, head = revision.current(load_settings())
    out.print(f"database: {now or 'empty'}   this version: {head}")
