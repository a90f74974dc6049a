"""Which files are to train on and which are held out, by their names."""

from pathlib import Path

import pytest

from workers.data.errors import DataFailed
from workers.data.files import parted


def make(top: Path, *names: str) -> None:
    for name in names:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).touch()


def names(found: tuple[list[Path], list[Path]], top: Path) -> tuple[list[str], list[str]]:
    one, other = ([str(file.relative_to(top)) for file in files] for files in found)
    return one, other


@pytest.mark.parametrize(
    ("files", "train", "held_out"),
    [
        (["a.csv", "b.csv", "c.txt"], ["a.csv", "b.csv"], []),
        (["train.csv", "test.csv"], ["train.csv"], ["test.csv"]),
        (["data/train-0.csv", "data/val_1.csv"], ["data/train-0.csv"], ["data/val_1.csv"]),
        (["valley/1.csv", "device/2.csv"], ["device/2.csv", "valley/1.csv"], []),
        (["train/valley/1.csv", "dev/x/2.csv"], ["train/valley/1.csv"], ["dev/x/2.csv"]),
        (["Training/1.csv", "held-out/2.csv"], ["Training/1.csv"], ["held-out/2.csv"]),
        (["trainers.csv", "tests/1.csv"], ["tests/1.csv", "trainers.csv"], []),
    ],
)
def test_parts_go_by_the_outermost_name(
    tmp_path: Path, files: list[str], train: list[str], held_out: list[str]
) -> None:
    make(tmp_path, *files)
    assert names(parted(tmp_path, (".csv",), "a file"), tmp_path) == (train, held_out)


def test_a_folder_without_such_files_says_which(tmp_path: Path) -> None:
    make(tmp_path, "a.txt")
    with pytest.raises(DataFailed, match=r"has no \.csv file to train on") as raised:
        parted(tmp_path, (".csv",), "a .csv file")
    assert raised.value.advice == "Give a .csv file."
