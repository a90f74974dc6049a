"""What a form of data is asked for."""

from dataclasses import dataclass
from pathlib import Path

from backend.runs.request.spec import DataSpec
from workers.data.errors import DataFailed
from workers.data.pictures import Size
from workers.definitions.definition import LoadedDefinition
from workers.definitions.errors import DefinitionFailed
from workers.definitions.samples import Samples


@dataclass(frozen=True, slots=True)
class DataRequest:
    """`place` and `tokenizer` are the spec's paths as the rank sees them ("" = none)."""

    spec: DataSpec
    place: str
    definition: LoadedDefinition
    tokenizer: str = ""

    @property
    def path(self) -> Path:
        """Raises `DataFailed` where none was given."""
        if not self.place:
            raise DataFailed(
                f"data of the form {self.spec.name!r} need a path", "Give a file or a folder."
            )
        return Path(self.place)

    @property
    def like(self) -> Samples | None:
        """The inputs of one sample of the definition's example; None where it has none."""
        if not self.definition.has_example:
            return None
        try:
            return self.definition.example(1)[0]
        except DefinitionFailed:
            return None

    @property
    def wanted(self) -> tuple[int, ...] | None:
        """The shape of one input of the definition's example; None where it has no example of
        one input."""
        shape = getattr(self.like, "shape", None)
        return None if shape is None else tuple(shape[1:])

    @property
    def size(self) -> Size | None:
        """The size of the pictures that the model takes, where its example is one."""
        shape = self.wanted
        if shape is None or len(shape) != 3 or shape[0] not in (1, 3):
            return None
        return (shape[0], shape[1], shape[2])
