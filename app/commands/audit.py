"""`stageflow audit`: who did what."""

import sys
from itertools import islice
from typing import Annotated

import typer

from app.commands.options.acting import connect
from app.commands.options.shared import Json
from app.exports.audit import csv_of
from app.terminal import print_json, print_table


def audit(
    limit: Annotated[
        int, typer.Option(min=1, max=10_000, help="How many entries, the newest first.")
    ] = 50,
    as_json: Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print every entry as CSV.")] = False,
) -> None:
    """Print who did what, and who was not allowed to.

    Examples:

        stageflow audit --limit 20

        stageflow audit --csv > audit.csv
    """
    log = connect().audit
    if as_csv:
        sys.stdout.write(csv_of(log.all()))
        return None
    entries = list(islice(log.list(limit=limit), limit))
    if as_json:
        return print_json(entries)
    rows = [
        [f"{e.time:%Y-%m-%d %H:%M:%S}", e.actor, e.action, e.target, e.outcome.value]
        for e in entries
    ]
    return print_table("", ["time (UTC)", "who", "did", "to", "outcome"], rows)
