"""A partition typed: where the stages stop, and their replicas."""

from collections.abc import Callable

import streamlit as st

from backend.errors import StageflowError
from backend.planning.plan import Partition

STOPS, REPLICAS, FAULT = "cut-stops", "cut-replicas", "cut-fault"


def cut_form(cut: Partition, change: Callable[[list[int], list[int]], None]) -> None:
    """Two fields, taken over by Enter; `change(stops, replicas)` may raise, which is said here
    while the fields keep what was typed."""
    if FAULT not in st.session_state:
        st.session_state[STOPS] = _written([stage.stop for stage in cut.stages[:-1]])
        st.session_state[REPLICAS] = _written([stage.replicas for stage in cut.stages])
    last = cut.stages[-1].stop

    def typed() -> None:
        st.session_state.pop(FAULT, None)
        try:
            change([*_read(STOPS), last], _read(REPLICAS))
        except StageflowError as fault:
            st.session_state[FAULT] = f"{fault}. {fault.advice}"
        except ValueError:
            st.session_state[FAULT] = "Write whole numbers with commas between them."

    with (
        st.form("cut", border=False, enter_to_submit=True),
        st.container(horizontal=True, vertical_alignment="bottom"),
    ):
        st.text_input("Cut behind layer number", key=STOPS, placeholder="none: one stage")
        st.text_input("Replicas of each stage", key=REPLICAS)
        st.form_submit_button("Apply", on_click=typed, icon=":material/check:")
    if said := st.session_state.pop(FAULT, ""):
        st.warning(said, icon=":material/warning:")


def _read(key: str) -> list[int]:
    return [int(part) for part in st.session_state[key].replace(",", " ").split()]


def _written(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))
