"""How commands print: tables for people, JSON for scripts, errors with advice."""

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app import visible
from backend.codec import to_plain
from backend.errors import StageflowError

PIPED_WIDTH = 160
"""Columns of a table that goes into a file or a pipe, where nothing says how wide it may be."""


class _Terminal(Console):
    """Without markup: what is printed holds people's words, and "stageflow[worker]" is one of
    ours. Nor do those words move the cursor."""

    def print(self, *objects: Any, **options: Any) -> None:
        shown = (visible.text(each) if isinstance(each, str) else each for each in objects)
        super().print(*shown, **options)


out = _Terminal(width=None if sys.stdout.isatty() else PIPED_WIDTH, markup=False)
err = _Terminal(stderr=True, width=None if sys.stderr.isatty() else PIPED_WIDTH, markup=False)


def print_json(value: object) -> None:
    """Print plain values or dataclasses as indented JSON on standard output."""
    text = orjson.dumps(
        value,
        default=lambda item: to_plain(type(item), item),
        option=orjson.OPT_INDENT_2 | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_SERIALIZE_NUMPY,
    )
    sys.stdout.write(visible.json(text.decode()) + "\n")


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print rows under a title; the cells are already formatted. The first two of several columns
    stay on a line; of a name and what is said of it the first alone."""
    table = Table(title=title or None, title_justify="left", header_style="bold", box=None)
    whole = min(len(columns) - 1, 2)
    for number, column in enumerate(columns):
        table.add_column(column, overflow="fold", no_wrap=number < whole)
    for row in rows:
        table.add_row(*map(_cell, row))
    out.print(table)


def _cell(value: Any) -> str | Text:
    if not isinstance(value, Text):
        return visible.line(str(value))
    value.plain = visible.line(value.plain)
    return value


def print_error(error: StageflowError) -> None:
    """One line for what is wrong, one for what to do."""
    head = Text("Error:", style="bold red")
    err.print(head, str(error), highlight=False, soft_wrap=True)
    if error.advice:
        err.print(f"       {error.advice}", highlight=False, soft_wrap=True)


def warn(text: str) -> None:
    """Something to know that does not stop the command, on standard error."""
    err.print(Text("Warning:", style="yellow"), text, highlight=False, soft_wrap=True)
