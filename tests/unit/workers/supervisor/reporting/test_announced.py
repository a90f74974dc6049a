"""A file that a rank announces is its own, plain, and not too large to read."""

import os
from pathlib import Path

import pytest

from workers.supervisor.reporting.announced import MAX_READ, ReportOutside, ReportTooLarge, opened


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("of the agent")
    work = tmp_path / "work"
    (work / "deep").mkdir(parents=True)
    (work / "deep" / "spans").write_bytes(b"12345")
    (work / "link").symlink_to(tmp_path / "secret")
    (work / "away").symlink_to(tmp_path)
    os.mkfifo(work / "pipe")
    return work


@pytest.mark.parametrize("start", ["", "absolute"])
def test_a_plain_file_is_read_and_then_removed(work: Path, start: str):
    path = str(work / "deep/spans") if start else "deep/spans"
    with opened(work, path) as file:
        assert file.read() == file.path.read_bytes() == b"12345"
    assert not (work / "deep" / "spans").exists()


@pytest.mark.parametrize(
    "path",
    [
        "link",
        "away/secret",
        "../secret",
        "deep/../../secret",
        "/etc/hostname",
        "pipe",
        "deep",
        "deep/spans/x",
        "missing",
        "nul\0byte",
        ".",
        "",
    ],
)
def test_nothing_else_is_opened(work: Path, tmp_path: Path, path: str):
    with pytest.raises(ReportOutside, match="not a regular file in its folder"), opened(work, path):
        pass
    assert (tmp_path / "secret").exists()


def test_a_name_that_changes_meanwhile_leads_nowhere_else(work: Path, tmp_path: Path):
    with opened(work, "deep/spans") as file:
        (work / "deep").rename(work / "moved")
        (work / "deep").symlink_to(tmp_path)
        (tmp_path / "spans").write_text("of the agent")
        assert file.path.read_bytes() == b"12345"
    assert (tmp_path / "spans").exists()
    assert not (work / "moved" / "spans").exists()


def test_a_file_that_is_taken_away_meanwhile_was_kept_all_the_same(work: Path):
    with opened(work, "deep/spans") as file:
        (work / "deep" / "spans").unlink()
        assert file.read() == b"12345"


def test_a_file_that_fails_to_be_kept_stays(work: Path):
    with pytest.raises(ZeroDivisionError), opened(work, "deep/spans"):
        _ = 1 / 0
    assert (work / "deep" / "spans").exists()


def test_a_huge_report_is_not_read_into_memory(work: Path):
    with (work / "huge").open("wb") as huge:
        huge.truncate(MAX_READ + 1)
    with opened(work, "huge") as file, pytest.raises(ReportTooLarge, match="huge is larger than"):
        file.read()
