"""What crosses the cuts of a graph: tensors, and weights that several layers read."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Crossing:
    """One tensor that crosses cuts: the layer that makes it, those that read it later, whether its
    gradient comes back (not where nothing before it is trained), bytes of each number, and rows
    along its first dimension (None = not known, as in old profiles; 0 = it is a weight)."""

    producer: int
    readers: tuple[int, ...]
    bytes: int
    has_gradient: bool = True
    number_bytes: int = 4
    rows: int | None = None

    @property
    def exchanged_bytes(self) -> int:
        """There and back."""
        return 2 * self.bytes if self.has_gradient else self.bytes


@dataclass(frozen=True, slots=True)
class TiedWeight:
    """A weight that several layers read: the first of them owns it and sends it on, so that it
    is among the crossings too."""

    owner: int
    readers: tuple[int, ...]
    weight: str
    bytes: int
