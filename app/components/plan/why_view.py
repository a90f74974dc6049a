"""Why a plan is as it is: what holds it back, what moving a cut would do, how far the bound is."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

import streamlit as st

from app.components.plan.planning_view import are_there, progress_view, replies_of, searches
from app.components.plan.wanted import Wanted
from app.components.shell.layout import card
from app.formats import change, count, percent, plain, rate, seconds, times, unbroken
from app.naming import plan_name
from app.session.links import page_link
from app.session.state import Page, Param
from backend.cluster.cluster import Cluster
from backend.errors import StageflowError
from backend.pipeline.chunk_placement import Placement
from backend.pipeline.codecs.catalog import codec
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shares import shares_text
from backend.planning.plan import Plan
from backend.planning.savings import MemorySaving
from backend.prediction.answer import Answer, ranked
from backend.prediction.question import Question
from backend.prediction.relaxed import Relaxed, relaxed, without_limits
from backend.prediction.without_work import idle_words, with_all_devices

CLOSE = 0.001
"""A plan that is so near to the bound is as fast as any."""


def why_view(
    found: Answer, question: Question, wanted: Wanted, others: Sequence[Answer] = ()
) -> None:
    """What was chosen, the reasons as a list, then the distance to the lower bound, what the
    question's limits cost, and the plan of the `others` that gives all devices work where this one
    does not."""
    chosen = _choices(found)
    with card("Why this one"), st.container(key="quiet-why", gap="small"):
        rows = (f"| {name} | {plain(what)} |" for name, what in chosen)
        st.markdown("\n".join(("| | |", "|---|---|", *rows)))
        st.markdown("\n".join(f"- {plain(unbroken(reason))}" for reason in found.reasons))
        st.caption(distance(found, question.cluster))
        _idle(found, question, wanted, others)
        _limits(found, question, wanted)


def _idle(found: Answer, question: Question, wanted: Wanted, others: Sequence[Answer]) -> None:
    """Which devices have no work, with a link to the plan that gives all of them some."""
    devices = question.cluster.num_devices
    full = with_all_devices(others, devices)
    if not (said := idle_words(found, full, devices)):
        return
    st.caption(plain(said))
    if full is not None:
        planner = full.prediction.plan.planner
        _to_plan("Show the plan on all devices", wanted.params | {Param.PLANNER: planner})


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
    name = plain(plan_name(less.prediction.plan))
    st.caption(f"Memory limits this plan. {less.where}: **{name}**, {rate(faster)} ({gain})")
    _to_plan("Show that plan", wanted.params | saved)


def _to_plan(label: str, params: Mapping[Param, object]) -> None:
    named = {param.value: value for param, value in params.items() if value}
    page_link(Page.PLAN, label, ":material/lock_open:", **named)


def distance(found: Answer, cluster: Cluster) -> str:
    """How much faster any plan could be at most, and what one device alone does."""
    inner = cluster.levels[0]
    is_shared = inner.cores is not None and inner.cores < inner.count
    where = f"the {count(inner.cores, 'core')} of each host" if is_shared else "all devices"
    if found.headroom >= 1:
        more = f"at most **{times(1 + found.headroom)}** as fast is possible"
    elif found.headroom >= CLOSE:
        more = f"at most **{percent(found.headroom)}** faster is possible"
    else:
        more = "no plan is faster"
    spent = found.prediction.seconds_per_minibatch
    return (
        f"No plan takes less than **{seconds(found.bound_seconds)}** per minibatch: that is all "
        f"compute, spread by speed over {where}, or more where links are too slow for that. "
        f"This one takes {seconds(spent)}: {more}. "
        f"It is {times(found.over_one_device)} as fast as one device."
    )


def _choices(answer: Answer) -> list[tuple[str, str]]:
    """What is chosen, and what: ("Schedule", "1F1B with weight stashing")."""
    plan = answer.prediction.plan
    rule, cut, samples = schedule(plan.schedule), plan.partition, answer.samples_per_update
    updates = count(samples // plan.microbatch, "microbatch", "microbatches")
    found = [
        ("Schedule", rule.title),
        ("Microbatch", count(plan.microbatch, "sample")),
        ("Update", f"after {updates}, {count(samples, 'sample')}"),
        ("Recomputation", "of all activations" if plan.recompute else "none"),
        (
            "Pipelines",
            plan.pipelines_words if plan.num_pipelines > 1 else "one",
        ),
    ]
    if rule.runs_ahead and len(cut.stages) > 1:
        further = count(plan.run_ahead, "further microbatch", "further microbatches")
        found.append(("Run ahead", f"{further} per hop" if plan.run_ahead else "as 1F1B"))
    if len(cut.stages) > 1:
        named = ", ".join(codec(name).title if name else "plain" for name in _codecs(plan))
        found.append(("Messages", named))
    if any(cut.shares):
        told = (f"stage {s}: {shares_text(own)}" for s, own in enumerate(cut.shares) if own)
        found.append(("Shares", ", ".join(told)))
    if max(cut.replicas) > 1:
        sharded = "sharded over the replicas of a stage" if plan.shard_state else "whole on each"
        found.append(("Optimizer's state", sharded))
        sums = plan.codec_of_sums
        found.append(("Sums of gradients", sums.words if sums else "of all gradients"))
    if plan.splits:
        found.append(("Split by channels", count(len(plan.splits), "layer")))
    if cut.chunks > 1:
        lies = ", as a V" if cut.placement is Placement.V else ""
        found.append(("Chunks", f"{cut.chunks} stages on each device{lies}"))
    return found


def _codecs(plan: Plan) -> tuple[str, ...]:
    """Those of the cuts, once where all are alike."""
    return plan.codecs if len(set(plan.codecs)) > 1 else plan.codecs[:1] or ("",)
