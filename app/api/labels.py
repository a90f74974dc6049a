"""What a request changes of the labels of a plan, a profile or a cluster."""

from dataclasses import dataclass

from backend.runs.history.labels import Change


@dataclass(frozen=True, slots=True)
class KeptLabels:
    """What is null or absent stays as it is; `tags` replaces all tags."""

    name: str | None = None
    note: str | None = None
    tags: tuple[str, ...] | None = None

    @property
    def change(self) -> Change:
        return Change(name=self.name, note=self.note, tags=self.tags)
