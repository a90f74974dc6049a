"""Compare schedules: plans under schedules, side by side on the team's own profile."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from app.components.comparison import outcome_panels
from app.components.comparison.pair_list import pair_list
from app.components.plan.imported_programs import imported_programs
from app.components.plan.plan_form import plan_form
from app.components.plan.planning_view import (
    are_there,
    leave,
    progress_view,
    replies_of,
    searches,
    stopped_note,
)
from app.components.plan.wanted import Wanted
from app.components.shell.boundary import guarded
from app.components.shell.layout import card, missing, page_header
from app.components.shell.number_field import whole_field
from app.formats import plain
from app.queries.outcomes import Failed, Outcome, Planned, failed, outcome, planned, telling
from app.session import state
from app.session.state import Page, Param
from app.terms import Term, explained
from backend.comparison.pairs import (
    BASE,
    BEST,
    LEAST_BATCH,
    PIPELINES,
    Pair,
    default_pairs,
    read_pairs,
)
from backend.errors import StageflowError
from backend.prediction.question import Question

COLUMN_TERMS = (Term.NOTATION, Term.BUBBLE, Term.VERSIONS, Term.STALENESS, Term.TWO_BW)
FEWEST, MOST, DEFAULT = 4, 512, 24  # microbatches


@missing("Compare schedules", Page.SCHEDULES, "Open without the link's settings", headed=True)
def page() -> None:
    """Profile and cluster, the pairs, and what each of them does."""
    page_header("Compare schedules", "Plans under schedules, on one time axis.")
    advice = "Schedules are compared on what your own layers cost."
    wanted = plan_form(advice, choosing=False)
    if wanted is not None:
        _compared(wanted)


@guarded
def _compared(wanted: Wanted) -> None:
    named = read_pairs(state.text(Param.PAIRS))
    pairs = named or _first_pairs(wanted)
    found: Sequence[Planned | Failed] | None = _planned(wanted, pairs) if pairs else None
    if found is None:
        return
    if not named:
        found = _planned(wanted, [_instead(one) for one in found])
        if found is None:
            return
        found = _those_that_fit(found)
    plans = [one for one in found if isinstance(one, Planned)]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        pair_list([one.pair for one in found], wanted.stored.id)
        number = _microbatches(telling(plans, DEFAULT))
        imported = imported_programs(wanted)
    shown = [outcome(one, number) if isinstance(one, Planned) else one for one in found]
    _show([*shown, *imported], wanted)


def _first_pairs(wanted: Wanted) -> tuple[Pair, ...]:
    """Those to begin with; () while their pipeline is being planned."""
    asked = searches([wanted.by(name, "", LEAST_BATCH).question for name in PIPELINES])
    leave(wanted.by("", "", LEAST_BATCH).question, asked)
    if not are_there(asked):
        progress_view(asked, "first")
        return ()
    cuts = {
        reply.planner: reply.answer.prediction.plan.partition
        for reply in replies_of(asked)
        if reply.answer
    }
    several = (name for name, cut in cuts.items() if cut.pipeline_size > 1)
    name = next(several, next(iter(cuts), ""))
    return default_pairs(name, cuts[name]) if name else (Pair(BEST, "", LEAST_BATCH), BASE)


def _planned(wanted: Wanted, pairs: Sequence[Pair]) -> list[Planned | Failed] | None:
    """Every pair with its plan; None while these are being planned."""
    questions = [_question(wanted, pair) for pair in pairs]
    asked = searches([each for each in questions if isinstance(each, Question) and each.planner])
    leave(wanted.by("", "", LEAST_BATCH).question, asked)
    if not are_there(asked):
        progress_view(asked, "pairs")
        return None
    stopped_note(asked)
    said = iter(asked)
    return [
        question
        if isinstance(question, Failed)
        else planned(question, pair, replies_of([next(said)]) if question.planner else ())
        for question, pair in zip(questions, pairs, strict=True)
    ]


def _question(wanted: Wanted, pair: Pair) -> Question | Failed:
    planner = pair.source if pair.is_planner else ""
    try:
        return wanted.by(planner, pair.schedule, pair.batch).question
    except StageflowError as reason:
        return failed(pair, reason)


def _instead(one: Planned | Failed) -> Pair:
    """The pair, or the best plan under its schedule where it cannot be."""
    pair, is_search = one.pair, one.pair.source == BEST or one.pair == BASE
    return pair if isinstance(one, Planned) or is_search else replace(pair, source=BEST)


def _those_that_fit(found: Sequence[Planned | Failed]) -> Sequence[Planned | Failed]:
    """To begin with: each plan once, and none that does not fit, unless none does."""
    plans = [one for one in found if isinstance(one, Planned)]
    each = {replace(one.plan, planner=""): one for one in reversed(plans)}
    return [one for one in plans if one in each.values()] or found


def _show(found: Sequence[Outcome | Failed], wanted: Wanted) -> None:
    for one in (each for each in found if isinstance(each, Failed)):
        said = plain(f"{one.name}: {one.reason}. {one.reason.advice}")
        st.warning(said, icon=":material/warning:")
    outcomes = [one for one in found if isinstance(one, Outcome)]
    if not outcomes:
        st.caption("None of these plans fits this cluster.")
        return
    with card("Side by side", help=explained(*COLUMN_TERMS)):
        outcome_panels.outcome_table(outcomes, _reference(wanted))
    outcome_panels.timelines(outcomes)
    outcome_panels.bubbles(outcomes)
    outcome_panels.memories(outcomes, wanted.question.cluster)
    outcome_panels.stages(outcomes)


def _reference(wanted: Wanted) -> float | None:
    """Samples/s of data parallelism that synchronises every round; None where it does not fit."""
    [(_, search)] = asked = searches([wanted.by(BASE.source, BASE.schedule, 1).question])
    search.wait()
    answers = (reply.answer for reply in replies_of(asked) if reply.answer)
    return next((found.prediction.samples_per_second for found in answers), None)


def _microbatches(usual: int) -> int:
    """As the URL says; without that `usual`, which changes with the pairs."""
    return whole_field(
        "Microbatches",
        Param.MICROBATCHES,
        FEWEST,
        MOST,
        min(max(usual, FEWEST), MOST),
        "How many the timelines cover; a plan that needs whole rounds takes more or fewer.",
    )


page()
