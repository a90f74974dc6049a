"""Why a plan is as it is: what holds it back, what moving a cut would do, how far the bound is."""

import streamlit as st

from app.components.shell.layout import card
from app.formats import count, percent, plain, seconds, times
from backend.pipeline.schedules.catalog import schedule
from backend.planning.plan import Plan
from backend.prediction.answer import Answer


def why_view(found: Answer) -> None:
    """What was chosen, the reasons as a list, then the distance to the lower bound."""
    chosen = _choices(found.prediction.plan)
    with card("Why this one"), st.container(key="quiet-why", gap="small"):
        rows = (f"| {name} | {plain(what)} |" for name, what in chosen)
        st.markdown("\n".join(("| | |", "|---|---|", *rows)))
        st.markdown("\n".join(f"- {plain(reason)}" for reason in found.reasons))
        st.caption(distance(found))


def distance(found: Answer) -> str:
    """How much faster any plan could be at most, and what one device alone does."""
    spent = found.prediction.seconds_per_minibatch
    return (
        f"No plan takes less than **{seconds(found.bound_seconds)}** per minibatch: all compute, "
        f"evenly on all devices. This one takes {seconds(spent)}: at most **{percent(found.gap)}** "
        f"faster is possible. It is {times(found.over_one_device)} as fast as one device."
    )


def _choices(plan: Plan) -> list[tuple[str, str]]:
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
    if max(cut.replicas) > 1:
        sharded = "sharded over the replicas of a stage" if plan.shard_state else "whole on each"
        found.append(("Optimizer's state", sharded))
    if cut.chunks > 1:
        found.append(("Chunks", f"{cut.chunks} stages on each device"))
    return found
