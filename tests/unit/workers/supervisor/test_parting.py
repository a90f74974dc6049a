"""A last checkpoint is asked for once, and waited for as long as a cancel has."""

from pathlib import Path

from workers.supervisor.ending import CANCELLED, STOPPED
from workers.supervisor.parting import REQUEST, Parting


def test_nothing_is_over_before_it_was_asked_for(tmp_path: Path):
    assert not Parting(tmp_path).is_over(5)


def test_it_is_over_with_a_newer_checkpoint(tmp_path: Path):
    parting = Parting(tmp_path)
    parting.ask(CANCELLED, True, 2)
    assert (tmp_path / REQUEST).exists()
    assert not parting.is_over(2)
    assert parting.is_over(3)
    assert parting.wish is CANCELLED


def test_ranks_that_save_nothing_are_not_waited_for(tmp_path: Path):
    parting = Parting(tmp_path)
    parting.ask(CANCELLED, False, 0)
    assert parting.is_over(0)
    assert not (tmp_path / REQUEST).exists()


def test_the_first_wish_counts(tmp_path: Path):
    parting = Parting(tmp_path)
    parting.ask(STOPPED, True, 0)
    parting.ask(CANCELLED, True, 0)
    assert parting.wish is STOPPED


def test_no_link_is_followed(tmp_path: Path):
    """The folder is the ranks' own: they may have put anything there."""
    (tmp_path / REQUEST).symlink_to(tmp_path / "elsewhere")
    parting = Parting(tmp_path)
    parting.ask(CANCELLED, True, 0)
    assert not (tmp_path / "elsewhere").exists()
    assert parting.wish is CANCELLED
