"""What a person sees of an error: a sentence and what to do, never a traceback."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from secrets import token_hex
from typing import ParamSpec, TypeVar

import streamlit as st

from app.formats import plain, sentence
from app.log import logger
from app.server.page_slots import page_slot
from backend.errors import StageflowError
from backend.runs.run import RunError

P = ParamSpec("P")
R = TypeVar("R")

log = logger("app")


def show(error: Exception) -> bool:
    """Draw `error` for the person; a fault of ours is logged under the id that is shown.

    Returns True, so that it can serve as `st.App(on_script_error=)`.
    """
    if isinstance(error, StageflowError):
        error_box(error)
    else:
        number = token_hex(4)
        log.error("page failed", error_id=number, exc_info=error)
        _apology(number)
    return True


@contextmanager
def boundary() -> Iterator[None]:
    """Draw instead of raise. Streamlit's own control flow passes through."""
    try:
        yield
    except Exception as error:
        show(error)


def guarded(draw: Callable[P, R]) -> Callable[P, R | None]:
    """The boundary around a function that Streamlit calls by itself, in its turn: a fragment, a
    dialog."""

    @wraps(draw)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R | None:
        try:
            with page_slot():
                return draw(*args, **kwargs)
        except Exception as error:
            show(error)
            return None

    return inside


def error_box(error: StageflowError) -> None:
    """Message and advice of an error that a person can correct."""
    _box(str(error), error.advice)


def run_error_box(error: RunError) -> None:
    """Why a run failed; its traceback folded away."""
    _box(error.message, error.advice, error.kind)
    if error.detail:
        with st.expander("Output of the program"):
            st.code(error.detail, language=None, wrap_lines=True, height=320)


def _apology(number: str) -> None:
    """A fault of Stageflow; the server's log has it under `number`."""
    _box(
        "This page could not be shown because of an error in Stageflow.",
        f"Reload the page. If it happens again, report error {number}: "
        "the server's log has the details under that number.",
    )


def _box(message: str, advice: str, kind: str = "") -> None:
    title = f"**{plain(sentence(message))}**" + (f" ({kind})" if kind else "")
    first, _, rest = advice.partition("\n")
    with st.container(key=f"error-{abs(hash((message, advice)))}"):
        st.error(f"{title}\n\n{plain(first)}" if first else title, icon=":material/error:")
        if rest:
            st.code(rest, language="yaml")
