"""`stageflow comment`: what people say of a run to each other."""

from typing import Annotated

import typer

from app import formats, visible
from app.commands.history import RunId
from app.commands.options.acting import connect
from app.commands.options.shared import Json
from app.terminal import err, out, print_json, print_table

app = typer.Typer(help="Comments on runs.", no_args_is_help=True)


@app.command("list")
def list_comments(run_id: RunId, as_json: Json = False) -> None:
    """List what is said of a run, the oldest first."""
    backend = connect()
    backend.runs.get(run_id)
    found = backend.comments.list(run_id)
    if as_json:
        return print_json(list(found))
    return print_table(
        f"run {run_id}: {formats.count(len(found), 'comment')}",
        ["comment", "by", "when", "text"],
        [[c.id, c.author, formats.ago(c.created_at), visible.line(c.text)] for c in found],
    )


@app.command("add")
def add_comment(
    run_id: RunId, text: Annotated[str, typer.Argument(help="Plain text.", show_default=False)]
) -> None:
    """Comment on a run, in your name.

    Example:

        stageflow comment add 42 "The loss rises again after epoch 3."
    """
    out.print(f"comment {connect().comments.add(run_id, text).id}")


@app.command("delete")
def delete_comment(
    comment_id: Annotated[int, typer.Argument(help="Its number.", show_default=False)],
) -> None:
    """Delete a comment of yours, or any one in a project that you manage."""
    err.print(f"comment {connect().comments.delete(comment_id).id} is deleted")
