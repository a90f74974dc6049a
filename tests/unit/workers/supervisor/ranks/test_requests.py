"""A request is an empty file in the ranks' own folder: they may have put anything there."""

from pathlib import Path

from workers.supervisor.ranks.requests import SAVE_NOW, request


def test_the_file_is_there_however_often_it_is_asked_for(tmp_path: Path):
    request(tmp_path, SAVE_NOW)
    request(tmp_path, SAVE_NOW)
    assert (tmp_path / SAVE_NOW).read_bytes() == b""


def test_no_link_is_followed(tmp_path: Path):
    (tmp_path / SAVE_NOW).symlink_to(tmp_path / "elsewhere")
    request(tmp_path, SAVE_NOW)
    assert not (tmp_path / "elsewhere").exists()
