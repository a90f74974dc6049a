"""A partition typed: where the stages stop, their replicas, and the codecs of its cuts."""

from collections.abc import Callable

import streamlit as st

from app.session import state
from app.session.state import Param
from backend.errors import StageflowError
from backend.pipeline.codecs.catalog import CODECS, PLAIN
from backend.planning.plan import Partition

STOPS, REPLICAS, CODED, FAULT = "cut-stops", "cut-replicas", "cut-codecs", "cut-fault"
CODECS_HELP = (
    f"How messages are coded behind each stage: {PLAIN}, {', '.join(CODECS)}. One for all cuts, or "
    f"one for each of them, such as int8,{PLAIN}. Empty: as More options say."
)


def cut_form(cut: Partition, change: Callable[[list[int], list[int], str], None]) -> None:
    """Three fields, taken over by Enter; `change(stops, replicas, codecs)` may raise, which is said
    here while the fields keep what was typed."""
    if FAULT not in st.session_state:
        st.session_state[CODED] = state.text(Param.CODECS)
        st.session_state[STOPS] = _written([stage.stop for stage in cut.stages[:-1]])
        st.session_state[REPLICAS] = _written([stage.replicas for stage in cut.stages])
    last = cut.stages[-1].stop

    def typed() -> None:
        st.session_state.pop(FAULT, None)
        try:
            change([*_read(STOPS), last], _read(REPLICAS), st.session_state[CODED])
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
        st.text_input("Codec of each cut", key=CODED, help=CODECS_HELP, placeholder="as asked for")
        st.form_submit_button("Apply", on_click=typed, icon=":material/check:")
    if said := st.session_state.pop(FAULT, ""):
        st.warning(said, icon=":material/warning:")


def _read(key: str) -> list[int]:
    return [int(part) for part in st.session_state[key].replace(",", " ").split()]


def _written(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))
