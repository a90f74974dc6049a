"""Which tensors safetensors files hold, by their headers alone."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from backend.runs.history.records import TRAINED_INDEX as INDEX
from backend.runs.history.records import TRAINED_MODEL as WHOLE
from workers.definitions.errors import DefinitionFailed


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor of a file, under the name that it has there."""

    file: Path
    name: str
    shape: tuple[int, ...]


def stored_in(path: Path) -> dict[str, Stored]:
    """The tensors of one file, or of a folder: those that its `model.safetensors.index.json`
    names, else of its `model.safetensors`, else of its only file. Raises `DefinitionFailed`."""
    if not path.is_dir():
        return _tensors(path)
    if (path / INDEX).exists():
        return _indexed(path)
    files = sorted(path.glob("*.safetensors"))
    if (path / WHOLE) in files:
        files = [path / WHOLE]
    if len(files) == 1:
        return _tensors(files[0])
    names = ", ".join(file.name for file in files[:3])
    raise DefinitionFailed(
        f"the folder {path.name} has "
        + (f"{names} and no {INDEX}" if files else "no safetensors files"),
        "Give one file of it, or the folder with its index; convert .bin files first.",
    )


@contextmanager
def opened(file: Path) -> Iterator[None]:
    """What goes wrong with `file` inside, as `DefinitionFailed`."""
    try:
        file.open("rb").close()  # the library calls every fault a missing file
        yield
    except PermissionError as error:
        raise DefinitionFailed(
            f"{file.name} cannot be read by the ranks, which run as a user of their own",
            "Make it readable for all: chmod a+r, and a+x for the folders above it.",
        ) from error
    except (SafetensorError, OSError) as error:
        raise DefinitionFailed(
            f"{file.name} cannot be read as safetensors: {error}",
            "It is another kind of file, or only part of one: copy it again.",
        ) from error


def _tensors(file: Path) -> dict[str, Stored]:
    with opened(file), safe_open(file, framework="pt") as source:
        return {
            name: Stored(file, name, tuple(source.get_slice(name).get_shape()))
            for name in source.keys()  # noqa: SIM118
        }


def _indexed(folder: Path) -> dict[str, Stored]:
    places = _weight_map(folder / INDEX)
    files = sorted(set(places.values()))
    gone = [name for name in files if Path(name).name != name or not (folder / name).exists()]
    if gone:
        raise DefinitionFailed(
            f"{INDEX} names {len(files)} files, and {', '.join(gone[:3])} "
            f"{'is' if len(gone) == 1 else 'are'} not in the folder {folder.name}",
            "Copy every file of the model into the folder.",
        )
    held = {name: _tensors(folder / name) for name in files}
    for name, file in places.items():
        if name not in held[file]:
            raise DefinitionFailed(
                f"{INDEX} says that {name} is in {file}, which has no such tensor",
                "The files are of different versions: copy all of them again.",
            )
    return {name: held[file][name] for name, file in places.items()}


def _weight_map(index: Path) -> dict[str, str]:
    try:
        told: Any = json.loads(index.read_text())
        places = told["weight_map"]
        return {str(name): str(file) for name, file in places.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DefinitionFailed(
            f"{index.name} is not an index of shards: {error}",
            'It should be {"weight_map": {name: file}}, as transformers writes it.',
        ) from error
