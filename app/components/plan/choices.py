"""What was chosen besides the partition, in words: schedule, microbatch, recomputation."""

from app.formats import count
from backend.pipeline.schedules.catalog import schedule
from backend.planning.plan import Plan


def choices(plan: Plan) -> list[tuple[str, str]]:
    """What is chosen, and what: ("Schedule", "1F1B with weight stashing")."""
    rule, cut = schedule(plan.schedule), plan.partition
    updates = f"after {count(plan.batch, 'microbatch', 'microbatches')}" if rule.batched else ""
    found = [
        ("Schedule", rule.title),
        ("Microbatch", count(plan.microbatch, "sample")),
        ("Update", updates or "after every microbatch"),
        ("Recomputation", "of all activations" if plan.recompute else "none"),
        (
            "Pipelines",
            f"{plan.num_pipelines} on the same devices" if plan.num_pipelines > 1 else "one",
        ),
    ]
    if cut.chunks > 1:
        found.append(("Chunks", f"{cut.chunks} stages on each device"))
    return found
