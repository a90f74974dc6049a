"""Which files of a folder are to train on and which are held out, by their names."""

import re
from pathlib import Path

from workers.data.errors import DataFailed

TRAIN = re.compile(r"(train|training)(?![a-z])", re.IGNORECASE)
HELD_OUT = re.compile(r"(test|val|valid|validation|dev|eval|held[-_]?out)(?![a-z])", re.IGNORECASE)
"""How the names of files or folders begin that hold such a part: "test", "val-00001.parquet"."""


def there(path: Path, what: str) -> Path:
    """`path`, once it is known to be there and open to the ranks. Raises `DataFailed`."""
    try:
        if path.is_dir():
            next(path.iterdir(), None)
        else:
            path.open("rb").close()
    except FileNotFoundError:
        raise DataFailed(f"{path} does not exist", f"Give {what} on the node.") from None
    except PermissionError:
        raise DataFailed(
            f"{path} cannot be read by the ranks of a run",
            "Let others read it (chmod -R o+rX); ranks run as a user of their own.",
        ) from None
    return path


def parted(path: Path, suffixes: tuple[str, ...], what: str) -> tuple[list[Path], list[Path]]:
    """(files to train on, files held out) of a file or folder, each in the order of names.
    Raises `DataFailed` where there is none to train on."""
    if not there(path, what).is_dir():
        return [path], []
    files = sorted(f for f in path.rglob("*") if f.suffix.lower() in suffixes and f.is_file())
    if not files:
        kinds = " or ".join(suffixes)
        raise DataFailed(f"{path} has no {kinds} file to train on", f"Give {what}.")
    parts = {file: _part(file, path) for file in files}
    train = [file for file in files if parts[file] is TRAIN]
    if not train:
        return files, []
    return train, [file for file in files if parts[file] is HELD_OUT]


def _part(file: Path, top: Path) -> re.Pattern[str] | None:
    """Which part its name, or the outermost folder with such a name, says; None: neither."""
    for name in file.relative_to(top).parts:
        for part in (TRAIN, HELD_OUT):
            if part.match(name):
                return part
    return None
