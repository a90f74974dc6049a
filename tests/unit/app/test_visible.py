"""Nothing that a stranger typed reaches a terminal as a command."""

import sys
from datetime import UTC, datetime
from io import StringIO

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import terminal, visible
from app.exports.audit import csv_of
from app.exports.catalog import log_text
from backend.people.audit import AuditEntry, AuditOutcome
from backend.runs.history.records import LogLine

ESCAPES = "\x1b[2J\x9b31m\r\b\x07\x7f\u202e\u2028"
OBEYED = {*map(chr, (*range(9), *range(11, 32), *range(0x7F, 0xA0), 0x2028, 0x202E))}


@given(st.text())
def test_a_text_keeps_its_length_and_loses_what_terminals_obey(words: str) -> None:
    assert len(visible.text(words)) == len(visible.line(words)) == len(words)
    assert not OBEYED & set(visible.text(words))
    assert not (OBEYED | {"\n", "\t"}) & set(visible.line(words))
    assert orjson.loads(visible.json(orjson.dumps(words).decode())) == words


def test_a_name_draws_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"eve{ESCAPES}\n2026-01-01 ada   deleted"
    entry = AuditEntry(
        1, datetime(2026, 1, 2, tzinfo=UTC), name, "sign in", "", AuditOutcome.DENIED
    )
    sheet = csv_of([entry])
    log = log_text([LogLine(1, 0, 0.0, name)])
    printed = StringIO()
    monkeypatch.setattr(terminal.out, "_file", printed)
    terminal.print_table("", ["who", "did"], [[name, "sign in"]])
    monkeypatch.setattr(sys, "stdout", json := StringIO())
    terminal.print_json({"name": name})
    for text, num_lines in ((sheet, 2), (log, 1), (printed.getvalue(), 2), (json.getvalue(), 3)):
        assert text.count("\n") == num_lines
        assert not OBEYED & set(text)
    assert orjson.loads(json.getvalue()) == {"name": name}
