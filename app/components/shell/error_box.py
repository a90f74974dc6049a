"""A fault, said calmly: what is wrong, what to do, and the detail for those who want it."""

import streamlit as st

from app.formats import plain, sentence
from backend.errors import StageflowError
from backend.runs.run import RunError


def error_box(error: StageflowError) -> None:
    """Message and advice of an error that a person can mend."""
    _box(str(error), error.advice)


def run_error_box(error: RunError) -> None:
    """Why a run failed; its traceback folded away."""
    _box(error.message, error.advice, error.kind)
    if error.detail:
        with st.expander("What the program said"):
            st.code(error.detail, language=None, wrap_lines=True, height=320)


def apology(number: str) -> None:
    """Something of ours broke; `number` finds it in the server's log."""
    _box(
        "This page could not be drawn. The fault is Stageflow's, not yours.",
        f"Reload the page. If it comes back, report error {number}: "
        "the server's log holds the rest under that number.",
    )


def _box(message: str, advice: str, kind: str = "") -> None:
    title = f"**{plain(sentence(message))}**" + (f" ({kind})" if kind else "")
    first, _, rest = advice.partition("\n")
    with st.container(key=f"error-{abs(hash((message, advice)))}"):
        st.error(f"{title}\n\n{plain(first)}" if first else title, icon=":material/error:")
        if rest:
            st.code(rest, language="yaml")
