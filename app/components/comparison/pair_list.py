"""The pairs of a plan and a schedule that are compared: add one, take one away."""

from collections.abc import Sequence

import streamlit as st

from app import services
from app.components.plan.plan_form import OWN, PLANNERS
from app.formats import plain
from app.session import state
from app.session.state import Param
from backend.comparison.pairs import (
    KEPT,
    LEAST_BATCH,
    MOST,
    MOST_BATCH,
    Pair,
    takes_batch,
    write_pairs,
)
from backend.pipeline.schedules.catalog import plannable_schedules
from backend.pipeline.schedules.catalog import schedule as schedule_named
from backend.planning.catalog import title


def pair_list(pairs: Sequence[Pair], profile_id: int) -> None:
    """One removable entry per pair, and the form that adds another. Changes go to the URL."""
    with st.container(horizontal=True, gap="small"):
        for number, pair in enumerate(pairs):
            st.button(
                f"\\#{number + 1} {_named(pair)}",
                key=f"pair-{write_pairs([pair])}",
                icon=":material/close:",
                icon_position="right",
                help="Remove",
                disabled=len(pairs) == 1,
                on_click=_put,
                args=([other for other in pairs if other != pair],),
            )
        if len(pairs) < MOST:
            with st.popover("Add", icon=":material/add:"):
                _adding(pairs, profile_id)


def _adding(pairs: Sequence[Pair], profile_id: int) -> None:
    sources = {name: title(name) for name in PLANNERS if name}
    for kept in services.backend().plans.list(profile_id):
        sources[f"{KEPT}{kept.id}"] = f"Saved plan {kept.id}: {kept.name}"
    for pair in pairs:
        sources.setdefault(pair.source, f"By hand: {pair.source}")
    with st.form("add-pair", border=False):
        source = st.selectbox("Plan", list(sources), format_func=sources.__getitem__)
        names = ["", *(member.name for member in plannable_schedules())]
        schedule = st.selectbox(
            "Schedule", names, format_func=lambda name: schedule_named(name).title if name else OWN
        )
        batch = st.number_input(
            "Microbatches per update",
            1,
            MOST_BATCH,
            max(LEAST_BATCH, *(pair.batch for pair in pairs)),
            help="Under schedules that update once per batch; others ignore it",
        )
        pressed = st.form_submit_button("Add the pair", type="primary", icon=":material/add:")
    if pressed:
        number = int(batch) if takes_batch(schedule) else 1
        added = Pair(source, schedule, number)
        if added in pairs:
            st.warning("This pair is listed already.", icon=":material/info:")
        else:
            _put([*pairs, added])
            st.rerun()


def _put(pairs: Sequence[Pair]) -> None:
    state.put(Param.PAIRS, write_pairs(pairs))


def _named(pair: Pair) -> str:
    batch = f"batch {pair.batch}" if takes_batch(pair.schedule) else ""
    return plain(", ".join(filter(None, (pair.source, pair.schedule, batch))))
