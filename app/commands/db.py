"""`stageflow db`: the database's schema."""

import typer

from app.terminal import out
from backend.settings import load_settings
from backend.storage import schema

app = typer.Typer(help="The database: its schema revision and upgrades.", no_args_is_help=True)


@app.command()
def upgrade() -> None:
    """Bring the database to this version's schema. Nothing that is stored is lost."""
    settings = load_settings()
    before, _ = schema.current(settings)
    after = schema.upgrade(settings)
    out.print(f"database: {before or 'empty'} -> {after}")


@app.command()
def current() -> None:
    """Print the database's revision and the one that this version needs."""
    now, head = schema.current(load_settings())
    out.print(f"database: {now or 'empty'}   this version: {head}")
