"""Tables for notebooks: text and lines in the colour of the page around them, light or dark."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

LINE = "1px solid rgba(128,138,152,.4)"
CELL = "padding:.25em .7em;text-align:left;color:inherit;background:transparent"
MOST = 30
"""Rows of a table; more are counted."""


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "") -> str:
    """A table as HTML; every cell is escaped. At most `MOST` rows are drawn."""
    found = list(rows)
    body = "".join(_row("td", row) for row in found[:MOST])
    if len(found) > MOST:
        body += _row("td", [f"… and {len(found) - MOST:,} more"])
    title = f'<caption style="{CELL};font-weight:600">{escape(caption)}</caption>' * bool(caption)
    return (
        '<table style="border-collapse:collapse;color:inherit;margin:.4em 0">'
        f"{title}<thead>{_row('th', head)}</thead><tbody>{body}</tbody></table>"
    )


def by_columns(columns: Mapping[str, Sequence[Any]], caption: str = "") -> str:
    """The same of columns by name."""
    return table(list(columns), zip(*columns.values(), strict=True), caption)


def paragraphs(sentences: Iterable[str]) -> str:
    """Sentences below each other."""
    return "".join(f'<div style="margin:.15em 0">{escape(each)}</div>' for each in sentences)


def heading(text: str, line: str = "") -> str:
    """What something is, and in a line what of it is worth knowing."""
    told = f'<span style="opacity:.75"> · {escape(line)}</span>' if line else ""
    return f'<div style="margin:.4em 0"><b>{escape(text)}</b>{told}</div>'


def _row(kind: str, cells: Sequence[Any]) -> str:
    style = f"{CELL};border-bottom:{LINE}" + (";font-weight:600" if kind == "th" else "")
    parts = "".join(f'<{kind} style="{style}">{escape(str(cell))}</{kind}>' for cell in cells)
    return f'<tr style="background:transparent">{parts}</tr>'
