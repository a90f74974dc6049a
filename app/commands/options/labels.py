"""Options that change name, note and tags of what is kept."""

from typing import Annotated

import typer

from backend.errors import InvalidInput
from backend.runs.history.labels import Change


def label_options(
    name: Annotated[str | None, typer.Option(help="Its new name.")] = None,
    note: Annotated[str | None, typer.Option(help="Its note; empty takes it away.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Add this tag (again for more).")] = None,
    untag: Annotated[list[str] | None, typer.Option(help="Take this tag away.")] = None,
) -> Change:
    """Raises `InvalidInput` where nothing is to be changed."""
    change = Change(name=name, note=note, add=tuple(tag or ()), remove=tuple(untag or ()))
    if change == Change():
        raise InvalidInput("nothing to change", "Give --name, --note, --tag or --untag.")
    return change
