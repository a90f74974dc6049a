"""Model definitions: taken in, checked without running them, kept by version."""

from collections.abc import Sequence
from pathlib import Path

from backend.definitions.check import check
from backend.definitions.definition import Definition, InvalidDefinition, Source
from backend.definitions.ports import DefinitionStore
from backend.definitions.zoo import ZooEntry, zoo, zoo_file
from backend.errors import NotFound

MAX_NAME = 100


class DefinitionService:
    """Everything pages and commands do with definitions."""

    def __init__(self, store: DefinitionStore) -> None:
        self._store = store

    def add(self, filename: str, data: bytes, name: str | None = None) -> Definition:
        """Keep a file under `name` (its stem by default). Equal bytes under an old name give
        the version that is there; new bytes make the next one. Raises `InvalidDefinition`."""
        return self._add(filename, data, name, "upload")

    def add_zoo(self, name: str) -> Definition:
        """Keep a bundled definition. Raises `NotFound`."""
        file = zoo_file(name)
        return self._add(file.name, file.read_bytes(), name, "zoo")

    def zoo(self) -> tuple[ZooEntry, ...]:
        return zoo()

    def list(self) -> Sequence[Definition]:
        """Every version, newest first."""
        return self._store.list()

    def get(self, definition_id: int) -> Definition:
        return self._store.get(definition_id)

    def source(self, definition_id: int) -> bytes:
        return self._store.source(definition_id)

    def resolve(self, model: str) -> Definition:
        """What a person means by a .py file, a zoo name, "name" (its newest version) or
        "name@version". A file or a zoo model is kept first. Raises `NotFound`."""
        if model.endswith(".py"):
            return self._from_file(Path(model))
        name, at, version = model.rpartition("@")
        if at:
            return self._version(name, version)
        found = self._store.find(model)
        if found is not None and found.source == "upload":
            return found
        if model in (entry.name for entry in zoo()):
            return self.add_zoo(model)
        if found is not None:
            return found
        raise NotFound(
            f"no model {model!r}",
            "Give a .py file, a stored name (stageflow models), or a zoo name: "
            + ", ".join(entry.name for entry in zoo()),
        )

    def _add(self, filename: str, data: bytes, name: str | None, source: Source) -> Definition:
        name = (name or Path(filename).stem).strip()
        if not name or len(name) > MAX_NAME or "@" in name or not name.isprintable():
            raise InvalidDefinition(
                f"{name[:MAX_NAME]!r} cannot name a definition",
                f"Use 1 to {MAX_NAME} printable characters without @.",
            )
        check(filename, data)
        return self._store.add(name, filename, data, source)

    def _from_file(self, path: Path) -> Definition:
        try:
            return self.add(path.name, path.read_bytes())
        except OSError as fault:
            raise NotFound(f"{path}: {fault.strerror}", "Check the path of the file.") from None

    def _version(self, name: str, version: str) -> Definition:
        found = self._store.find(name, int(version)) if version.isdecimal() else None
        if found is None:
            raise NotFound(f"no version {version} of {name!r}", "List them: stageflow models")
        return found
