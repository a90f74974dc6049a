"""Whatever ranks left in a folder goes with it, and nothing else."""

import os
from pathlib import Path

from workers.supervisor.setup.removal import remove


def test_folders_beyond_what_a_path_may_have_are_removed(tmp_path: Path) -> None:
    folder, kept = tmp_path / "folder", tmp_path / "kept"
    folder.mkdir()
    kept.write_text("kept")
    place = os.open(folder, os.O_RDONLY)
    for number in range(1_500):
        os.mkdir("x" * 8, dir_fd=place)
        if number % 100 == 0:
            os.mkdir(".removed-3", dir_fd=place)
            os.symlink(tmp_path, "link", dir_fd=place)
            os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=place))
        below = os.open("x" * 8, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.close(place)
    remove(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
