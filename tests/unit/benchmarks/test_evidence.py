"""A benchmark writes its table between the two lines of its page, and nowhere else."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.benchmarks import evidence as module
from tests.benchmarks.all import HERE, WRITERS
from tests.benchmarks.evidence import Evidence, NoPlaceForTable, evidence, replaced

PAGE = """# Speed

Before.

<!-- table: fast begin -->
| old |
<!-- table: fast end -->

Between.

<!-- table: fast-too begin; python old.py, 2026-01-01, load 1.0 on 2 cores -->
| kept |
<!-- table: fast-too end -->
After.
"""
HEAD, ROWS = ["what", "s"], [["a \\1", "1.0"], ["b", "2.0"]]


def test_what_stands_between_the_lines_alone_is_replaced() -> None:
    found = replaced(PAGE, "fast", "| new \\1 |", "python new.py, today")
    new = "<!-- table: fast begin; python new.py, today -->\n| new \\1 |"
    assert found == PAGE.replace("<!-- table: fast begin -->\n| old |", new)
    assert replaced(found, "fast", "| new \\1 |", "python new.py, today") == found
    assert "| kept |" not in replaced(PAGE, "fast-too", "| new |", "x")


@pytest.mark.parametrize(
    "page",
    [
        "no table",
        PAGE.replace("<!-- table: fast end -->", ""),
        PAGE.replace("<!-- table: fast begin -->", ""),
        PAGE + PAGE,
    ],
)
def test_a_page_without_its_place_is_refused(page: str) -> None:
    with pytest.raises(NoPlaceForTable, match="'fast'"):
        replaced(page, "fast", "| new |", "")


def test_nothing_is_measured_for_a_table_that_has_no_place(tmp_path: Path) -> None:
    def measured() -> Iterator[list[str]]:
        raise AssertionError("measured")
        yield []

    page = tmp_path / "page.md"
    page.write_text("no table")
    with pytest.raises(NoPlaceForTable):
        Evidence(page, "", write=True).table("fast", HEAD, measured())
    assert page.read_text() == "no table"


def test_a_page_is_written_only_where_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "speed.md"
    page.write_text(PAGE)
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    monkeypatch.setattr(sys, "argv", ["bench_fast.py", "6"])
    evidence("speed", "bench_fast").table("fast", HEAD, ROWS)
    printed = capsys.readouterr().out
    assert printed == "| what | s |\n| --- | --- |\n| a \\1 | 1.0 |\n| b | 2.0 |\n"
    assert page.read_text() == PAGE
    monkeypatch.setattr(sys, "argv", ["bench_fast.py", "--write", "6"])
    evidence("speed", "bench_fast").table("fast", HEAD, ROWS)
    assert sys.argv == ["bench_fast.py", "6"]
    assert "fast begin; python -m tests.benchmarks.bench_fast 6, 20" in page.read_text()
    assert f"cores -->\n{printed}<!-- table: fast end -->" in page.read_text()


def test_every_benchmark_that_writes_is_known() -> None:
    files = {file.stem.removeprefix("bench_"): file for file in HERE.glob("bench_*.py")}
    assert {name for name, file in files.items() if " evidence(" in file.read_text()} == WRITERS


def test_the_places_of_all_tables_are_whole() -> None:
    for page in module.FOLDER.glob("*.md"):
        text = page.read_text()
        for name in module.NAMED.findall(text):
            assert replaced(text, name, "", "")
