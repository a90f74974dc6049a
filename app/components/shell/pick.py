"""Choose one or several of the stored things; the choice is in the URL."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

import streamlit as st

from app.session import state
from app.session.state import Param
from backend.errors import NotFound

T = TypeVar("T")


def pick(
    label: str,
    things: Sequence[T],
    param: Param,
    identify: Callable[[T], object],
    describe: Callable[[T], str],
    width: int | Literal["stretch"] = "stretch",
    help: str | None = None,
    *,
    depends: bool = False,
) -> T:
    """The thing that the URL names, the first where it names none; a selectbox to choose another.

    The URL names it by `identify`; `things` must not be empty. Raises `NotFound` where the URL
    names what is not among them, unless they `depend` on what else is chosen: then it is the first.
    """
    by_id = {str(identify(thing)): thing for thing in things}
    named = state.text(param)
    if not depends:
        check_named(label, param, list(by_id))
    key = f"pick-{param.value}"
    if st.session_state.get(key) not in by_id or st.session_state.get(f"{key}-url") != named:
        st.session_state[key] = named if named in by_id else next(iter(by_id))
    else:  # said again: a field in a popover that opens later would show its first choice
        st.session_state[key] = st.session_state[key]
    chosen: str = st.selectbox(
        label,
        list(by_id),
        format_func=lambda found: describe(by_id[found]),
        key=key,
        width=width,
        help=help,
    )
    if named or chosen != next(iter(by_id)):
        state.put(param, chosen)
    st.session_state[f"{key}-url"] = state.text(param)
    return by_id[chosen]


def check_named(label: str, param: Param, names: Sequence[str]) -> None:
    """Raises `NotFound` where the URL names something, and none of these."""
    named = state.text(param)
    if named and named not in names:
        raise NotFound(f"no {label.lower()} {named!r:.60}")


def pick_several(
    label: str,
    options: Sequence[int],
    named: Sequence[int],
    param: Param,
    describe: Callable[[int], str],
    **look: Any,
) -> list[int]:
    """The numbers that the URL names (`named`); a multiselect to choose others."""
    key = f"pick-{param.value}"
    st.session_state[key] = list(named)
    return st.multiselect(
        label,
        options,
        format_func=describe,
        key=key,
        on_change=lambda: state.put(param, ",".join(map(str, st.session_state[key]))),
        **look,
    )
