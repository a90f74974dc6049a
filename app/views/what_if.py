"""What if: the best plan's throughput and cost on other clusters."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from app.components.comparison.what_if_view import REMARKS, SPEED, what_if_view
from app.components.plan.plan_form import plan_form
from app.components.plan.wanted import Wanted
from app.components.shell.boundary import guarded
from app.components.shell.layout import missing, page_header
from app.components.shell.pick import pick
from app.formats import plain, sentence
from app.queries import planner
from app.queries.background import Background, end_others, under_way
from app.session.state import Page, Param, bound
from backend.comparison.variations import Point, Prices, read_prices
from backend.prediction.imagined import precisions_of
from backend.profiles.devices import Precision

REFRESH = 0.6
LINE = "The best plan when one thing of the cluster changes."
PRICE = 2.0


@missing("What if", Page.WHAT_IF, "Open without the link's settings", headed=True)
def page() -> None:
    """The question, and the curves as far as they are."""
    page_header("What if", LINE)
    wanted = plan_form("Other clusters are tried on what your own layers cost.")
    if wanted is None:
        return
    measure, prices, precision = _measure(wanted)
    if prices is None:
        return
    sweep = _sweep(wanted, precision)
    if sweep is None:
        return
    running = sweep.is_running
    again = partial(planner.swept.clear, wanted.question, precision)
    draw = st.fragment(_curves, run_every=REFRESH if running else None)
    draw(sweep, measure, prices, running, again)


def _measure(wanted: Wanted) -> tuple[str, Prices | None, Precision]:
    with st.container(horizontal=True, vertical_alignment="bottom", key="row-measure"):
        measure = st.segmented_control(
            "Show",
            list(REMARKS),
            default=SPEED,
            required=True,
            **bound(Param.SHOW),
        )
        price = st.number_input(
            "Price per device and hour",
            0.0,
            1e6,
            PRICE,
            step=0.1,
            format="%.2f",
            **bound(Param.PRICE),
            help="In your currency",
            width=190,
        )
        others = st.text_input(
            "Other prices by type",
            **bound(Param.PRICES),
            placeholder="H100 4.50, T4 0.35",
            help="Device types that have another price",
            width=220,
        )
        precision = _precision(wanted)
    return measure or SPEED, _prices(float(price), others or ""), precision


@guarded
def _prices(usual: float, others: str) -> Prices:
    return read_prices(usual, others)


def _precision(wanted: Wanted) -> Precision:
    """Asked for where peaks of the cluster's device are known; the profile's own by default."""
    own = Precision(wanted.stored.profile.precision)
    precisions = precisions_of(wanted.cluster.device)
    if not precisions:
        return own
    known = sorted(precisions, key=lambda precision: precision != own)
    return pick("Precision", known, Param.PRECISION, str, str, width=130, depends=True)


@guarded
def _sweep(wanted: Wanted, precision: Precision) -> Background[Point]:
    question = wanted.question
    sweep = under_way(planner.swept, question, precision)
    end_others((question, precision), {sweep: partial(planner.swept.clear, question, precision)})
    return sweep


@guarded
def _curves(
    sweep: Background[Point],
    measure: str,
    prices: Prices,
    was_running: bool,
    again: Callable[[], None],
) -> None:
    """Drawn again while the sweep runs, and once more by the page when it has ended."""
    if was_running and not sweep.is_running:
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="center"):
        if sweep.is_running:
            said = f"{sweep.done} of {sweep.total} clusters planned"
            st.progress(sweep.done / max(sweep.total, 1), text=said)
            st.button("Cancel", icon=":material/stop_circle:", on_click=sweep.cancel)
        elif sweep.was_cancelled or sweep.fault:
            why = str(sweep.fault or "Cancelled")
            advice = f" {sweep.fault.advice}" if sweep.fault else ""
            tried = f"after {sweep.done} of {sweep.total} clusters"
            st.caption(plain(f"{sentence(why)} {tried}.{advice}"))
            if st.button("Start again", icon=":material/restart_alt:"):
                again()
                st.rerun()
    what_if_view(sweep.items, measure, prices)


page()
