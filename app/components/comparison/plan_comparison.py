"""Two kept plans side by side: what differs, the layers that moved, timelines on one axis."""

from collections.abc import Iterator

import streamlit as st

from app import services
from app.components.comparison.outcome_panels import bubbles, timelines
from app.components.shell.layout import card
from app.differences import STAGE_COLUMNS, fact_row, moved_text, stage_row
from app.formats import NOTHING, count, plain
from app.queries.outcomes import Failed, Outcome, Planned, outcome
from app.session.links import page_link
from app.session.state import Page
from backend.comparison.pairs import KEPT, Pair
from backend.comparison.plans import PlanDifferences
from backend.prediction.question import Question
from backend.prediction.shapes import steady_shape
from backend.runs.plans import StoredPlan

MOST = 12
"""Groups of layers that are listed."""
STAGES = "The stages that differ: layers, devices, seconds and bytes in the first and second plan"


def plan_comparison(first: StoredPlan, second: StoredPlan) -> None:
    """Everything in which the second differs from the first."""
    found = services.backend().plans.differences(first.id, second.id)
    with card("What differs", "the second plan beside the first"):
        _facts(first, second, found)
    if found.moved:
        moved = sum(len(group.layers) for group in found.moved)
        with card("Layers in another stage", count(moved, "layer")):
            st.markdown("\n".join(f"- {plain(moved_text(m))}" for m in found.moved[:MOST]))
            if len(found.moved) > MOST:
                st.caption(f"And {count(len(found.moved) - MOST, 'group')} more.")
    if found.stages:
        _stages(found)
    outcomes = list(_outcomes(first, second))
    if len(outcomes) == 2:
        timelines(outcomes)
        bubbles(outcomes)


def _facts(first: StoredPlan, second: StoredPlan, found: PlanDifferences) -> None:
    with st.container(horizontal=True, gap="medium"):
        for kept, which in ((first, "First"), (second, "Second")):
            page_link(Page.PLAN, f"{which}: **{plain(kept.name)}** ({kept.id})", plan=kept.id)
    if not found.facts:
        st.caption("These plans are the same.")
        return
    heads = ("Figure", f"First: {plain(first.name)}", f"Second: {plain(second.name)}", "Difference")
    rows = [[plain(cell) or NOTHING for cell in fact_row(fact)] for fact in found.facts]
    st.table(dict(zip(heads, map(list, zip(*rows, strict=True)), strict=True)), hide_index=True)
    if found.alike:
        st.caption(f"The same in both: {', '.join(found.alike)}.")


def _stages(found: PlanDifferences) -> None:
    heads = ("stage", *(head for head, _ in STAGE_COLUMNS))
    columns = map(list, zip(*map(stage_row, found.stages), strict=True))
    with card("Stages that differ", "first → second; one value where both have it"):
        st.dataframe(
            dict(zip(heads, columns, strict=True)),
            hide_index=True,
            key="stage-differences",
            column_config={"stage": st.column_config.TextColumn(width=55, pinned=True)},
            alt=STAGES,
        )


def _outcomes(first: StoredPlan, second: StoredPlan) -> Iterator[Outcome]:
    """What each does with about as many samples, those from which figures are predicted; why not,
    where that cannot be simulated."""
    samples = max(
        steady_shape(kept.plan).num_microbatches * kept.plan.microbatch for kept in (first, second)
    )
    profiles = services.backend().profiles
    for kept in (first, second):
        question = Question(profiles.get(kept.profile_id).profile, kept.cluster)
        planned = Planned(Pair(f"{KEPT}{kept.id}", ""), question, kept.prediction)
        found = outcome(planned, round(samples / kept.plan.microbatch), kept.name)
        if isinstance(found, Failed):
            st.caption(plain(f"{kept.name} has no timeline: {found.reason}"))
        else:
            yield found
