"""Model definitions: taken in, checked without running them, kept by version."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from backend.definitions.check import check
from backend.definitions.definition import Definition, InvalidDefinition, Source
from backend.definitions.forms import FORMS, Description, form_of
from backend.definitions.zoo import ZooEntry, zoo, zoo_file
from backend.errors import NotFound, listed
from backend.people.rights import Right
from backend.services.people.access import Access
from backend.storage.definitions import SqlDefinitions
from backend.whole import is_whole

MAX_NAME = 100


@dataclass(frozen=True)
class DefinitionService:
    """Everything pages and commands do with definitions. `listed` shows those of the chosen
    project, `store` those of every one that the actor sees."""

    _store: SqlDefinitions
    _listed: SqlDefinitions
    _access: Access

    def add(self, filename: str, data: bytes, name: str | None = None) -> Definition:
        """Keep a file under `name` (by default its own). Equal bytes under an old name give
        the version that is there; new bytes make the next one. Raises `InvalidDefinition`."""
        return self._add(filename, data, name, "upload")

    def add_zoo(self, name: str) -> Definition:
        """Keep a bundled definition. Raises `NotFound`."""
        file = zoo_file(name)
        return self._add(file.name, file.read_bytes(), name, "zoo")

    def zoo(self) -> tuple[ZooEntry, ...]:
        return zoo()

    def list(self) -> Sequence[Definition]:
        """Every version of a model, newest first."""
        return [each for each in self._listed.list() if form_of(each.filename) != "weights"]

    def weights(self) -> Sequence[Definition]:
        """Every file of weights, newest first."""
        return [each for each in self._listed.list() if form_of(each.filename) == "weights"]

    def describe(self, definition_id: int) -> Description:
        """Form, task, parameters and facts, read from the file without running it."""
        return check(self.get(definition_id).filename, self.source(definition_id))

    def clone(self, definition_id: int, name: str) -> Definition:
        """The same file under another name. Raises `InvalidDefinition` on a bad name."""
        kept = self.get(definition_id)
        return self._add(kept.filename, self.source(kept.id), name, "upload")

    def delete(self, definition_id: int) -> None:
        """Raises `NotFound`, and `DefinitionInUse` naming the runs and profiles that need it."""
        project = self._store.get(definition_id).project_id
        self._access.require(Right.EDIT, "delete", f"model {definition_id}", project)
        self._store.delete(definition_id)

    def get(self, definition_id: int) -> Definition:
        return self._store.get(definition_id)

    def source(self, definition_id: int) -> bytes:
        return self._store.source(definition_id)

    def resolve(self, model: str) -> Definition:
        """What a person means by a file, a zoo name, "name" (its newest version) or
        "name@version". A file or a zoo model is kept first. Raises `NotFound`."""
        if Path(model).suffix.lower() in FORMS:
            return self._from_file(Path(model))
        name, at, version = model.rpartition("@")
        if at:
            return self._version(name, version)
        found = self._store.find(model, None, self._access.home)
        if found is not None and found.source == "upload":
            return found
        if model in (entry.name for entry in zoo()):
            return self.add_zoo(model)
        if found is not None:
            return found
        raise NotFound(
            f"no model {model!r}",
            "Give a file (.py, config.json, .pt2), a stored name (stageflow models), or one of "
            "the zoo: " + ", ".join(entry.name for entry in zoo()),
        )

    def _add(self, filename: str, data: bytes, name: str | None, source: Source) -> Definition:
        described = check(filename, data)
        name = (name or _own_name(filename, described)).strip()
        if not name or len(name) > MAX_NAME or "@" in name or not name.isprintable():
            raise InvalidDefinition(
                f"{name[:MAX_NAME]!r} cannot name a definition",
                f"Use 1 to {MAX_NAME} printable characters without @.",
            )
        home = self._access.home
        self._access.require(Right.EDIT, "add", f"model {name}", home)
        return self._store.add(name, filename, data, source, home)

    def _from_file(self, path: Path) -> Definition:
        try:
            folder = path.resolve().parent.name
            name = folder if path.name == "config.json" else None
            return self.add(path.name, path.read_bytes(), name)
        except OSError as fault:
            raise NotFound(f"{path}: {fault.strerror}", "Check the path of the file.") from None

    def _version(self, name: str, version: str) -> Definition:
        home = self._access.home
        found = self._store.find(name, int(version), home) if is_whole(version) else None
        if found is None:
            raise NotFound(f"no version {version} of {name!r}", listed("Models", "models"))
        return found


def _own_name(filename: str, described: Description) -> str:
    """The file's stem; of a plain config.json the type of its model."""
    stem = Path(filename).stem
    return dict(described.facts)["model type"] if stem == "config" and described.facts else stem
