"""`stageflow models`: what can be profiled and trained."""

from typing import Annotated

import typer

from app import formats
from app.commands.options.acting import connect
from app.commands.options.shared import Json
from app.terminal import print_json, print_table


def models(
    add: Annotated[
        str, typer.Option("--add", help="Add this Python file or zoo model first.")
    ] = "",
    as_json: Json = False,
) -> None:
    """List the stored model definitions and the zoo.

    Examples:

        stageflow models

        stageflow models --add my_model.py
    """
    definitions = connect().definitions
    if add:
        definitions.resolve(add)
    kept, zoo = definitions.list(), definitions.zoo()
    if as_json:
        return print_json({"models": list(kept), "zoo": list(zoo)})
    print_table(
        formats.count(len(kept), "version") if kept else "No model yet: profile one to add it",
        ["model", "source", "size", "content", "added"],
        [
            [d.label, d.source, formats.size(d.size), d.digest[:12], formats.ago(d.created_at)]
            for d in kept
        ],
    )
    print_table("Zoo", ["name", "title"], [[entry.name, entry.title] for entry in zoo])
    return None
