"""What a training tells of its progress to whom it concerns."""

from typing import Protocol


class TrainingObserver(Protocol):
    """Microbatches are counted from the start of the epoch."""

    def forward(self, microbatch: int) -> None:
        """The first stage is about to run `microbatch`."""
        ...

    def updating(self, stage: int, microbatches: int) -> None:
        """`stage` is about to make the weights that have seen that many."""
        ...

    def updated(self) -> None:
        """The weights of all stages that were about to are made."""
        ...

    def averaged(self, stage: int) -> None:
        """The pipelines were averaged with their reference."""
        ...


class Unobserved:
    """Nobody is concerned."""

    def forward(self, microbatch: int) -> None: ...

    def updating(self, stage: int, microbatches: int) -> None: ...

    def updated(self) -> None: ...

    def averaged(self, stage: int) -> None: ...


UNOBSERVED = Unobserved()
