"""What the definitions need from the outside."""

from collections.abc import Sequence
from typing import Protocol

from backend.definitions.definition import Definition, Source


class DefinitionStore(Protocol):
    """Keeps definitions by content: equal bytes under one name are one version."""

    def add(
        self, name: str, filename: str, data: bytes, source: Source, project: int
    ) -> Definition:
        """The version of `name` in the project that has these bytes, made when there is none."""
        ...

    def get(self, definition_id: int) -> Definition:
        """Raises `NotFound`."""
        ...

    def find(self, name: str, version: int | None, project: int) -> Definition | None:
        """The given version, or the newest one, in the project."""
        ...

    def list(self) -> Sequence[Definition]:
        """Newest first."""
        ...

    def source(self, definition_id: int) -> bytes:
        """The file's text. Raises `NotFound`."""
        ...

    def delete(self, definition_id: int) -> None:
        """Forget it, and its file where no other version has the same. Raises `NotFound`, and
        `DefinitionInUse` naming the runs and profiles that need it."""
        ...
