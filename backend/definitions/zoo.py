"""The bundled definitions, read as text and never imported here."""

import ast
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from backend.definitions.syntax import syntax_tree
from backend.errors import NotFound


@dataclass(frozen=True, slots=True)
class ZooEntry:
    """`title` is the first line of the file's docstring."""

    name: str
    title: str


@cache
def zoo() -> tuple[ZooEntry, ...]:
    """Every bundled definition, by name; read once, as a page that is drawn asks each time."""
    return tuple(ZooEntry(file.stem, _title(file)) for file in _files())


def zoo_file(name: str) -> Path:
    """The file of one bundled definition; raises `NotFound` naming the others."""
    names = [file.stem for file in _files()]
    if name not in names:
        raise NotFound(f"no model {name!r} in the zoo", f"The zoo has {', '.join(names)}.")
    return _folder() / f"{name}.py"


def _files() -> list[Path]:
    return sorted(file for file in _folder().glob("*.py") if file.stem[0] != "_")


def _folder() -> Path:
    """`workers/zoo`, found by its package's place: importing it could pull in torch."""
    spec = find_spec("workers")
    if spec is None or not spec.submodule_search_locations:
        raise NotFound("the zoo is not installed", "Reinstall stageflow: its zoo is missing.")
    return Path(spec.submodule_search_locations[0]) / "zoo"


def _title(file: Path) -> str:
    docstring = ast.get_docstring(syntax_tree(file.read_bytes())) or file.stem
    return docstring.splitlines()[0]
