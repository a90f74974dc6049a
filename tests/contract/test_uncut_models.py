"""Contract: what cannot be cut says why, in words that name the line and what to change."""

from pathlib import Path

import pytest

from tests.contract.captures.page import uncut_file, uncut_names
from tests.contract.captures.rows import PAGE, REWRITE, uncut_row
from tests.contract.captures.uncut import UNCUT, UNCUT_ARCHITECTURES

BRANCH = next(iter(UNCUT))


@pytest.mark.parametrize("name", uncut_names())
def test_the_page_says_what_the_profile_says(name: str, tmp_path: Path) -> None:
    found = uncut_row(name, uncut_file(tmp_path, name))
    assert found in PAGE.read_text(), REWRITE


def test_the_line_and_what_to_change_are_named(tmp_path: Path) -> None:
    found = uncut_row(BRANCH, uncut_file(tmp_path, BRANCH))
    assert "net.py, line 11: it decides by the values of a tensor (return self.b(" in found
    assert "Choose by torch.where" in found


@pytest.mark.parametrize("name", list(UNCUT))
def test_every_reason_names_the_line(name: str, tmp_path: Path) -> None:
    assert "net.py, line 11: it" in uncut_row(name, uncut_file(tmp_path, name))


@pytest.mark.parametrize("name", UNCUT_ARCHITECTURES)
def test_of_a_library_it_says_that_nothing_is_to_be_changed(name: str, tmp_path: Path) -> None:
    found = uncut_row(name, uncut_file(tmp_path, name))
    assert found.count("That is code of transformers: there is nothing for you to change.") == 1
    assert "It trains in one stage, whose replicas share the samples." in found
