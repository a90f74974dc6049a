"""Who may write to a run: the holder of its current attempt, and nobody else."""

from dataclasses import dataclass

from backend.errors import StageflowError


class LeaseLost(StageflowError):
    """An attempt that no longer holds its run tried to write; nothing was changed."""

    advice = "The run was given up or taken over; stop its processes."


@dataclass(frozen=True, slots=True)
class Fence:
    """Every write of an attempt names all three and is refused where one is stale."""

    run_id: int
    attempt: int
    token: str
