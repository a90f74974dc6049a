"""Compare schedules: plans under schedules, side by side on the team's own profile."""

import streamlit as st

from app import services, state
from app.boundary import guarded
from app.components import outcome_panels
from app.components.card import card
from app.components.empty_state import empty_state
from app.components.outcome_table import outcome_table
from app.components.page_header import page_header
from app.components.pair_list import pair_list
from app.components.plan_form import Asked, asked_form
from app.formats import plain
from app.outcomes import Failed, Outcome, outcome, pipeline, reference, telling
from app.pairs import Pair, default_pairs, read_pairs
from app.state import Page, Param

FEWEST, MOST, DEFAULT = 4, 512, 24  # microbatches


def page() -> None:
    """Profile and cluster, the pairs, and what each of them does."""
    page_header("Compare schedules", "Plans under schedules, on one time axis.")
    profiles = services.backend().profiles.list()
    if not profiles:
        empty_state(
            "No profile yet",
            "Schedules are compared on what your own layers cost. Profile a model first.",
            Page.MODELS,
            "Go to Models",
        )
        return
    with st.container(border=True, key="panels-plan"):
        asked = asked_form(profiles)
        below = st.container()
    pairs = _pairs(asked) if asked else None
    if asked is None or not pairs:
        return
    with below:
        number = _microbatches(telling(asked.stored.profile, asked.cluster, pairs, DEFAULT))
    pair_list(pairs, asked.stored.id)
    _show(
        asked,
        [
            outcome(asked.stored.profile, asked.cluster, pair, asked.optimizer, number)
            for pair in pairs
        ],
    )


@guarded
def _pairs(asked: Asked) -> tuple[Pair, ...]:
    """Those that the URL names, else a few to begin with."""
    named = read_pairs(state.text(Param.PAIRS))
    return named or default_pairs(*pipeline(asked.stored.profile, asked.cluster))


def _show(asked: Asked, found: list[Outcome | Failed]) -> None:
    for failed in (one for one in found if isinstance(one, Failed)):
        said = plain(f"{failed.name}: {failed.reason}. {failed.reason.advice}")
        st.warning(said, icon=":material/warning:")
    outcomes = [one for one in found if isinstance(one, Outcome)]
    if not outcomes:
        st.caption("None of these pairs can be on this cluster.")
        return
    with card("Side by side"):
        outcome_table(outcomes, reference(asked.stored.profile, asked.cluster, asked.optimizer))
    outcome_panels.timelines(outcomes)
    outcome_panels.bubbles(outcomes)
    outcome_panels.memories(outcomes, asked.cluster)
    outcome_panels.stages(outcomes)


def _microbatches(usual: int) -> int:
    """As the URL says; without that `usual`, which changes with the pairs."""
    key = "microbatches-input"
    wanted = min(max(state.number(Param.MICROBATCHES) or usual, FEWEST), MOST)
    st.session_state[key] = wanted
    st.number_input(
        "Microbatches",
        FEWEST,
        MOST,
        help="How many the timelines cover; a plan that needs whole rounds takes more or fewer",
        key=key,
        width=130,
        on_change=lambda: state.put(Param.MICROBATCHES, st.session_state[key]),
    )
    return wanted


page()
