"""How plans, partitions, ranks, people's states and cleared runs are called for people."""

from datetime import UTC, tzinfo

from backend.people.person import Person
from backend.planning.plan import Partition, Plan
from backend.runs.run import Run

SHORT = 11  # characters
BY_HAND = "by-hand"
"""Who made a plan whose partition a person has changed."""


def partition_name(cut: Partition) -> str:
    """Replicas per stage while that is short, "2-1"; else the number of stages."""
    return cut.label if len(cut.label) <= SHORT else f"{len(cut.stages)} stages"


def plan_name(plan: Plan) -> str:
    """A plan in two words: "2-1 · pipedream"."""
    return f"{partition_name(plan.partition)} · {plan.schedule}"


def rank_names(plan: Plan) -> tuple[str, ...]:
    """One per rank, in rank order: "rank 0 · stage 0"."""
    stages = (
        number for number, stage in enumerate(plan.partition.stages) for _ in range(stage.replicas)
    )
    return tuple(f"rank {rank} · stage {stage}" for rank, stage in enumerate(stages))


def person_state(person: Person) -> str:
    """Whether somebody may come in."""
    if person.disabled:
        return "disabled"
    return "active" if person.joined else "invited"


def cleared(run: Run, zone: tzinfo | None = None) -> str | None:
    """That its project's rule took from the run, and what; None where it did not."""
    if run.cleared_at is None:
        return None
    day = run.cleared_at.astimezone(zone or UTC).date()
    return (
        f"Log, timelines and checkpoints were taken away by the project's rule on {day}. "
        "Figures, metrics, notes and files stay."
    )
