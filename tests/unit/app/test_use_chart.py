"""Cells of what devices use: a row per device, gaps stay gaps, the darkest is the most there is."""

from app.charts.use import DEVICE, END, PLACE, SHARE, START, TEXT, measures_of, use_rows
from backend.runs.use import Use, UsePoint

POINTS = [
    UsePoint(100.0, (Use("cpu", 0.5, 1024.0, sent=2e3, received=1e3), Use("cpu", 1.5))),
    UsePoint(105.0, (Use(""), Use("cpu", 1.0))),
    UsePoint(200.0, (Use("cpu", 0.25, 2048.0, sent=0.0, received=0.0), Use("cpu", 0.75))),
]


def test_only_what_is_told_is_drawn() -> None:
    assert [each.title for each in measures_of(POINTS)] == ["Compute", "Memory", "Network"]


def test_a_cell_for_each_known_value() -> None:
    compute, memory, _ = measures_of(POINTS)
    cells = use_rows(POINTS, compute, {0: "rank 0", 1: "rank 1"})
    assert [text.replace("\N{NO-BREAK SPACE}", " ") for text in dict.fromkeys(cells[DEVICE])] == [
        "rank 0 · 25 %",
        "rank 1 · 75 %",
    ]
    assert cells[SHARE] == [0.5, 0.25, 1.0, 1.0, 0.75]
    assert cells[PLACE] == [0, 0, 1, 1, 1]
    assert cells[START][:2] == [100e3, 200e3]
    assert cells[END][0] == 105e3
    sizes = use_rows(POINTS, memory, {})
    assert sizes[SHARE] == [0.5, 1.0]
    assert [text.replace("\N{NO-BREAK SPACE}", " ") for text in sizes[TEXT]] == [
        "1.00 KiB",
        "2.00 KiB",
    ]
