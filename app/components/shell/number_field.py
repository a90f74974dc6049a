"""A number that a person may type; the URL holds it unless it is the default."""

from typing import Literal

import streamlit as st

from app.session import state
from app.session.state import Param


def whole_field(
    label: str,
    param: Param,
    least: int,
    most: int,
    default: int,
    help: str,
    width: int | Literal["stretch"] = 150,
) -> int:
    """A whole number of `least` to `most`; one out of range in the URL is the nearest in it."""
    key = f"number-{param.value}"
    st.session_state[key] = min(max(state.number(param) or default, least), most)

    def changed() -> None:
        value = st.session_state[key]
        state.put(param, None if value == default else value)

    chosen = st.number_input(label, least, most, key=key, help=help, width=width, on_change=changed)
    return int(chosen)


def amount_field(label: str, param: Param, unit: float, help: str) -> float | None:
    """A number above 0, None where there is none. The URL counts in SI's unit, the field in
    `unit` of them."""
    key = f"number-{param.value}"
    now = state.amount(param)
    st.session_state[key] = None if now is None else now / unit

    def changed() -> None:
        value = st.session_state[key]
        state.put(param, f"{value * unit:.12g}" if value else None)

    st.number_input(
        label, 0.0, key=key, help=help, on_change=changed, placeholder="not given", format="%.4g"
    )
    return now
