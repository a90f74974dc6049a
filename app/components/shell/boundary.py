"""What a person sees of an error: a sentence and what to do, never a traceback."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from secrets import token_hex
from typing import ParamSpec, TypeVar

import structlog

from app.components.shell.error_box import apology, error_box
from app.server.page_slots import page_slot
from backend.errors import StageflowError

P = ParamSpec("P")
R = TypeVar("R")

log = structlog.get_logger("app")


def show(error: Exception) -> bool:
    """Draw `error` for the person; a fault of ours is logged under the id that is shown.

    Returns True, so that it can serve as `st.App(on_script_error=)`.
    """
    if isinstance(error, StageflowError):
        error_box(error)
    else:
        number = token_hex(4)
        log.error("page failed", error_id=number, exc_info=error)
        apology(number)
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
