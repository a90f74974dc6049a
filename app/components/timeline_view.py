"""One timeline, or a measured above a predicted one, with a window that fits the screen."""

import streamlit as st

from app.charts.frame import CONFIG
from app.charts.timeline import MAX_BARS, Window, num_microbatches, timeline, within
from app.formats import count
from backend.pipeline.timeline import Timeline

LEGIBLE = 10  # microbatches side by side whose numbers can be read
PLACES = ("Start", "Middle", "End", "All")


def timeline_view(
    key: str, upper: Timeline, ghost: Timeline | None = None, rank_names: tuple[str, ...] = ()
) -> None:
    """Draw it, with a choice of the stretch that is shown when it is long."""
    total = num_microbatches(upper)
    if total <= LEGIBLE * 1.5:
        return _draw(key, upper, ghost, rank_names)
    place = st.segmented_control(
        "Stretch",
        PLACES,
        default="Start",
        required=True,
        key=f"{key}-stretch",
        label_visibility="collapsed",
    )
    window = _window(str(place), total, upper, ghost)
    _draw(key, within(upper, window), within(ghost, window) if ghost else None, rank_names)
    st.caption(
        f"Microbatches {window.first} to {window.stop - 1} of {count(total)}"
        + (
            f": as many as can be drawn at once ({MAX_BARS:,} bars)."
            if _cut(place, window, total)
            else "."
        )
    )
    return None


def _cut(place: object, window: Window, total: int) -> bool:
    return place == "All" and window.stop < total


def _window(place: str, total: int, upper: Timeline, ghost: Timeline | None) -> Window:
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


def _draw(key: str, upper: Timeline, ghost: Timeline | None, rank_names: tuple[str, ...]) -> None:
    st.plotly_chart(timeline(upper, ghost, rank_names), key=f"{key}-chart", config=CONFIG)
