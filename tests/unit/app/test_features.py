"""The table of features names tests that are there."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).parents[3]
REFERENCE = re.compile(r"`((?:tests/[\w/]+\.py)?)(?:::(\w+))?`")


def references() -> Iterator[tuple[str, str]]:
    """(file, test) of each; "::name" alone is in the file that was named before it."""
    for line in (TOP / "docs" / "evidence" / "features.md").read_text().splitlines():
        file = ""
        for named, test in REFERENCE.findall(line):
            file = named or file
            if named or test:
                yield file, test


@pytest.mark.parametrize("file", sorted({file for file, _ in references()}))
def test_what_the_table_names_is_there(file: str) -> None:
    text = (TOP / file).read_text()
    for test in (test for other, test in references() if other == file and test):
        assert f"def {test}(" in text


def test_every_feature_has_a_test() -> None:
    rows = re.findall(r"^\| (?!feature|-)(.+) \| (.+) \|$", _tables(), re.MULTILINE)
    assert len(rows) > 30
    assert all("tests/" in shown for _, shown in rows)


def _tables() -> str:
    return (TOP / "docs" / "evidence" / "features.md").read_text()
