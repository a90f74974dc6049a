"""`stageflow views`: filters of the list of runs that are kept by name."""

from typing import Annotated

import typer

from app import formats
from app.commands.options.acting import connect
from app.commands.options.listing import run_filter
from app.commands.options.shared import Json, taking
from app.naming import filter_words
from app.terminal import err, out, print_json, print_table
from backend.runs.history.listing import RunFilter
from backend.runs.history.views import ListView

views = typer.Typer(help="Kept filters of the list of runs.", no_args_is_help=True)


@views.command("list")
def list_views(as_json: Json = False) -> None:
    """List your own views and those that are shared, by name."""
    found = connect().views.list()
    if as_json:
        return print_json(list(found))
    return print_table(
        formats.count(len(found), "view"),
        ["view", "name", "shows", "for"],
        [
            [v.id, v.name, filter_words(v.view.wanted), "everybody" if v.is_shared else "you"]
            for v in found
        ],
    )


@views.command("save")
@taking(run_filter)
def save_view(
    wanted: RunFilter,
    name: Annotated[str, typer.Argument(help="Its name.", show_default=False)],
    shared: Annotated[bool, typer.Option("--shared", help="For everybody in the project.")] = False,
) -> None:
    """Keep a filter, so that `stageflow runs --view NAME` and the Runs page know it.

    Example:

        stageflow views save "what failed" --state failed --shared
    """
    kept = connect().views.save(name, ListView(wanted), shared)
    out.print(f"view {kept.id} is {kept.name}", markup=False)


@views.command("delete")
def delete_view(
    view_id: Annotated[int, typer.Argument(help="Its number.", show_default=False)],
) -> None:
    """Delete a view. The runs stay."""
    err.print(f"view {connect().views.delete(view_id).id} is deleted")
