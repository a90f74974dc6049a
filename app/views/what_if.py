"""What if: the best plan's throughput and cost on other clusters."""

import streamlit as st

from app import services
from app.boundary import guarded
from app.components.empty_state import empty_state
from app.components.page_header import page_header
from app.components.plan_form import Wanted, plan_form
from app.components.what_if_view import MEASURES, SPEED, what_if_view
from app.state import Key, Page, Param
from app.sweeps import Sweep, sweep_of
from app.variations import Prices, read_prices

REFRESH = 0.6
LINE = "The best plan when one thing of the cluster changes."
PRICE = 2.0


def page() -> None:
    """The question, and the curves as far as they are."""
    page_header("What if", LINE)
    profiles = services.backend().profiles.list()
    if not profiles:
        empty_state(
            "No profile yet",
            "Other clusters are tried on what your own layers cost. Profile a model first.",
            Page.MODELS,
            "Go to Models",
        )
        return
    wanted = plan_form(profiles)
    if wanted is None:
        return
    measure, prices = _measure()
    if prices is None:
        return
    sweep = _sweep(wanted)
    running = sweep.is_running
    st.fragment(_curves, run_every=REFRESH if running else None)(sweep, measure, prices, running)


def _measure() -> tuple[str, Prices | None]:
    with st.container(horizontal=True, vertical_alignment="bottom", key="row-measure"):
        measure = st.segmented_control(
            "Show",
            MEASURES,
            default=SPEED,
            required=True,
            key=Param.SHOW.value,
            bind="query-params",
        )
        price = st.number_input(
            "Price per device and hour",
            0.0,
            1e6,
            PRICE,
            step=0.1,
            format="%.2f",
            key=Param.PRICE.value,
            bind="query-params",
            help="In your currency",
            width=190,
        )
        others = st.text_input(
            "Other prices by type",
            key=Param.PRICES.value,
            bind="query-params",
            placeholder="H100 4.50, T4 0.35",
            help="Types of devices whose price is another one",
            width=220,
        )
    return measure or SPEED, _prices(float(price), others or "")


@guarded
def _prices(usual: float, others: str) -> Prices:
    return read_prices(usual, others)


def _sweep(wanted: Wanted) -> Sweep:
    attempt = st.session_state.setdefault(Key.SWEEP.value, 0)
    return sweep_of(
        wanted.stored.profile,
        wanted.cluster,
        wanted.schedule,
        wanted.batch,
        wanted.optimizer,
        attempt,
    )


@guarded
def _curves(sweep: Sweep, measure: str, prices: Prices, was_running: bool) -> None:
    """Drawn again while the sweep runs, and once more by the page when it has ended."""
    if was_running and not sweep.is_running:
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="center"):
        if sweep.is_running:
            said = f"{sweep.done} of {sweep.total} clusters planned"
            st.progress(sweep.done / max(sweep.total, 1), text=said)
            st.button("Cancel", icon=":material/stop_circle:", on_click=sweep.cancel)
        elif sweep.was_cancelled:
            st.caption(f"Cancelled after {sweep.done} of {sweep.total} clusters.")
            if st.button("Start again", icon=":material/restart_alt:"):
                st.session_state[Key.SWEEP.value] += 1
                st.rerun()
    what_if_view(sweep, measure, prices)


page()
