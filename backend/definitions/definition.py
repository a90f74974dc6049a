"""A model definition as it is stored: a file, kept by content and version."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from backend.errors import InvalidInput
from backend.people.project import DEFAULT_PROJECT

Source = Literal["upload", "zoo"]


class InvalidDefinition(InvalidInput):
    """A file that cannot be a model definition; the message names the line."""


class DefinitionInUse(InvalidInput):
    """Runs or profiles need a definition that is to be deleted; the message names them."""


@dataclass(frozen=True, slots=True)
class Definition:
    """One version of a definition. `digest` is the SHA-256 (hex) of its file, `size` its bytes."""

    id: int
    name: str
    version: int
    filename: str
    digest: str
    size: int
    source: Source
    created_at: datetime
    project_id: int = DEFAULT_PROJECT

    @property
    def label(self) -> str:
        """The form that `stageflow ... --model` takes: "vgg@2"."""
        return f"{self.name}@{self.version}"
