"""What the ranks of a plan are called in charts."""

from backend.planning.plan import Plan


def rank_names(plan: Plan) -> tuple[str, ...]:
    """One per rank, in rank order: "rank 0 · stage 0"."""
    stages = (
        number for number, stage in enumerate(plan.partition.stages) for _ in range(stage.replicas)
    )
    return tuple(f"rank {rank} · stage {stage}" for rank, stage in enumerate(stages))
