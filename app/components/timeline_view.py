"""One timeline, or a measured above a predicted one, with a window that fits the screen."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.charts.frame import CONFIG
from app.charts.timeline import (
    MAX_BARS,
    Stretch,
    Window,
    num_microbatches,
    timeline,
    whole,
    within,
)
from app.formats import count
from backend.pipeline.timeline import Timeline

ALT = "When each rank computes, sends and waits: one row per rank, time to the right"
LEGIBLE = 10  # microbatches side by side whose numbers can be read
PLACES = ("Start", "Middle", "End", "All")


def timeline_view(
    key: str,
    upper: Timeline,
    ghost: Timeline | None = None,
    rank_names: tuple[str, ...] = (),
    controls: DeltaGenerator | None = None,
) -> None:
    """Draw it; when it is long, with a choice of the stretch that is shown, in `controls`."""
    total = num_microbatches(upper)
    if total <= LEGIBLE * 1.5:
        return _draw(key, whole(upper), whole(ghost) if ghost else None, rank_names)
    place = (controls or st.container()).segmented_control(
        "Stretch",
        PLACES,
        default="Start",
        required=True,
        key=f"{key}-stretch",
        label_visibility="collapsed",
    )
    window = _window(place, total, upper, ghost)
    _draw(key, within(upper, window), within(ghost, window) if ghost else None, rank_names)
    cut = place == "All" and window.stop < total
    st.caption(
        f"While microbatches {window.first} to {window.stop - 1} of {count(total)} are worked on"
        + (f": as many as can be drawn at once ({MAX_BARS:,} bars)." if cut else ".")
    )
    return None


def _window(place: str | None, total: int, upper: Timeline, ghost: Timeline | None) -> Window:
    size = LEGIBLE
    match place:
        case "Middle":
            return Window((total - size) // 2, (total + size) // 2)
        case "End":
            return Window(total - size, total)
        case "All":
            bars = len(upper.spans) + (len(ghost.spans) if ghost else 0)
            return Window(0, max(size, min(total, total * MAX_BARS // max(bars, 1))))
        case _:
            return Window(0, size)


def _draw(key: str, upper: Stretch, ghost: Stretch | None, rank_names: tuple[str, ...]) -> None:
    st.plotly_chart(timeline(upper, ghost, rank_names), key=f"{key}-chart", config=CONFIG, alt=ALT)
