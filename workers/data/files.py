"""Which files of a folder are to train on and which are held out, by their names."""

from pathlib import Path

from workers.data.errors import DataFailed

TRAIN = ("train",)
HELD_OUT = ("test", "val", "held", "dev", "eval")
"""How the names of files or folders begin that hold such a part."""


def there(path: Path, what: str) -> Path:
    """`path`, once it is known to be there and open to the ranks. Raises `DataFailed`."""
    try:
        if path.is_dir():
            next(path.iterdir(), None)
        else:
            path.open("rb").close()
    except FileNotFoundError:
        raise DataFailed(f"{path} is not there", f"Give {what} on the node.") from None
    except PermissionError:
        raise DataFailed(
            f"{path} may not be read by the ranks of a run",
            "Let others read it (chmod -R o+rX); runs are no user of your own.",
        ) from None
    return path


def parted(path: Path, suffixes: tuple[str, ...], what: str) -> tuple[list[Path], list[Path]]:
    """(files to train on, files held out) of a file or folder, each in the order of names.
    Raises `DataFailed` where there is none to train on."""
    if not there(path, what).is_dir():
        return [path], []
    files = sorted(f for f in path.rglob("*") if f.suffix.lower() in suffixes and f.is_file())
    held_out = [file for file in files if _begins(file, path, HELD_OUT)]
    named = [file for file in files if _begins(file, path, TRAIN)]
    rest = [file for file in files if file not in held_out]
    if not rest:
        kinds = " or ".join(suffixes)
        raise DataFailed(f"{path} has no {kinds} file to train on", f"Give {what}.")
    return named or rest, held_out if named else []


def _begins(file: Path, top: Path, words: tuple[str, ...]) -> bool:
    return any(part.lower().startswith(words) for part in file.relative_to(top).parts)
