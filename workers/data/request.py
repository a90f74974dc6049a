"""What a form of data is asked for."""

from dataclasses import dataclass
from pathlib import Path

from backend.runs.request.spec import DataSpec
from workers.data.errors import DataFailed
from workers.data.pictures import Size
from workers.definitions.definition import LoadedDefinition
from workers.definitions.errors import DefinitionFailed


@dataclass(frozen=True, slots=True)
class DataRequest:
    """`place` is the spec's path as the rank sees it ("" = none)."""

    spec: DataSpec
    place: str
    definition: LoadedDefinition

    @property
    def path(self) -> Path:
        """Raises `DataFailed` where none was given."""
        if not self.place:
            raise DataFailed(
                f"data of the form {self.spec.name!r} need a path", "Give a file or a folder."
            )
        return Path(self.place)

    @property
    def wanted(self) -> tuple[int, ...] | None:
        """The shape of one input of the definition's example; None where it has no example of
        one input."""
        if not self.definition.has_example:
            return None
        try:
            inputs, _ = self.definition.example(1)
        except DefinitionFailed:
            return None
        shape = getattr(inputs, "shape", None)
        return None if shape is None else tuple(shape[1:])

    @property
    def size(self) -> Size | None:
        """The size of the pictures that the model takes, where its example is one."""
        shape = self.wanted
        if shape is None or len(shape) != 3 or shape[0] not in (1, 3):
            return None
        return (shape[0], shape[1], shape[2])
