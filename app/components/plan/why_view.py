"""Why a plan is as it is: what holds it back, what moving a cut would do, how far the bound is."""

from contextlib import suppress

import streamlit as st

from app.components.plan.planning_view import are_there, progress_view, replies_of, searches
from app.components.plan.wanted import Wanted
from app.components.shell.layout import card
from app.formats import change, count, percent, plain, rate, seconds, times
from app.naming import plan_name
from app.session.links import page_link
from app.session.state import Page, Param
from backend.errors import StageflowError
from backend.pipeline.schedules.catalog import schedule
from backend.planning.plan import Plan
from backend.planning.savings import MemorySaving
from backend.prediction.answer import Answer, ranked
from backend.prediction.question import Question
from backend.prediction.relaxed import Relaxed, relaxed, without_limits


def why_view(found: Answer, question: Question, wanted: Wanted) -> None:
    """What was chosen, the reasons as a list, then the distance to the lower bound, and what the
    question's limits cost."""
    chosen = _choices(found.prediction.plan)
    with card("Why this one"), st.container(key="quiet-why", gap="small"):
        rows = (f"| {name} | {plain(what)} |" for name, what in chosen)
        st.markdown("\n".join(("| | |", "|---|---|", *rows)))
        st.markdown("\n".join(f"- {plain(reason)}" for reason in found.reasons))
        st.caption(distance(found))
        _limits(found, question, wanted)


def _limits(found: Answer, question: Question, wanted: Wanted) -> None:
    """A link to each faster plan that a limit forbids, as far as they are known."""
    asked = searches(list(without_limits(question, found.prediction)))
    if not are_there(asked):
        progress_view(asked, "limits")
        return
    for each in asked:
        with suppress(StageflowError):
            free = ranked(replies_of([each]))[0].prediction
            if less := relaxed(each[0], free, found.prediction):
                _link(less, found, wanted)


def _link(less: Relaxed, found: Answer, wanted: Wanted) -> None:
    faster = less.prediction.samples_per_second
    gain = change(faster, found.prediction.samples_per_second)
    saved = (
        {Param.MEMORY: f"{less.memory:.12g}"}
        if less.memory
        else {Param.RECOMPUTE: MemorySaving.AUTO.value, Param.SHARD_STATE: MemorySaving.AUTO.value}
    )
    params = wanted.params | saved
    st.caption(
        f"{less.where}: **{plain(plan_name(less.prediction.plan))}**, {rate(faster)} ({gain})"
    )
    page_link(
        Page.PLAN,
        "Show that plan",
        ":material/lock_open:",
        **{param.value: value for param, value in params.items() if value},
    )


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
    if rule.runs_ahead and len(cut.stages) > 1:
        further = count(plan.run_ahead, "further microbatch", "further microbatches")
        found.append(("Run ahead", f"{further} per hop" if plan.run_ahead else "as 1F1B"))
    if max(cut.replicas) > 1:
        sharded = "sharded over the replicas of a stage" if plan.shard_state else "whole on each"
        found.append(("Optimizer's state", sharded))
    if cut.chunks > 1:
        found.append(("Chunks", f"{cut.chunks} stages on each device"))
    return found
