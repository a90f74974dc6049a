"""The audit log as CSV."""

import csv
from collections.abc import Iterable
from io import StringIO

from app import visible
from backend.people.audit import AuditEntry

COLUMNS = ("id", "time", "actor", "action", "target", "outcome")
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A cell that begins so would be computed by a spreadsheet."""


def csv_of(entries: Iterable[AuditEntry]) -> str:
    """One line per entry, in the order given."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for each in entries:
        words = [_plain(word) for word in (each.actor, each.action, each.target)]
        writer.writerow([each.id, each.time.isoformat(), *words, each.outcome.value])
    return out.getvalue()


def _plain(word: str) -> str:
    return visible.line(f"'{word}" if word.startswith(FORMULA) else word)
