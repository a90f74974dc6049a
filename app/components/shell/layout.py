"""What pages are laid out of: header, cards, rows of figures, and what stands where nothing is."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.formats import plain, sentence
from app.session.state import Page
from backend.errors import NotFound

GONE = "It may have been deleted, or the address is wrong."
Tone = Literal["gray", "green", "red", "orange"]


def page_header(title: str, line: str = "", remark: str = "") -> DeltaGenerator:
    """Draw title and line; the container that comes back takes the buttons. The browser's tab
    gets the title too. `title` and `remark` are text, `line` is Markdown. What comes and goes is a
    `remark` beside the title, where it takes no line of its own and moves nothing."""
    tab_title(title)
    with st.container(
        horizontal=True, vertical_alignment="bottom", key="page-header", gap="medium"
    ):
        with st.container(width="stretch", gap=None):
            said = f" &ensp;:small[:small[:gray[{plain(remark)}]]]" if remark else ""
            st.title(plain(title) + said, anchor=False)
            if line:
                st.caption(line)
        return st.container(horizontal=True, width="content", gap="small")


def tab_title(*parts: str) -> None:
    """Name the browser's tab: ("vgg_digits", "run 2") is "vgg_digits · run 2 · Stageflow"."""
    st.set_page_config(page_title=" · ".join((*parts, "Stageflow")))


@contextmanager
def card(title: str, remark: str = "", help: str = "") -> Iterator[None]:
    """A box with a thin border: everything drawn inside the block is in it. `help`: what its terms
    mean, on hover."""
    with st.container(border=True, gap="small"):
        said = f"**{title}**" + (f" &ensp;:gray[:small[{remark}]]" if remark else "")
        st.markdown(said, help=help or None)
        yield


@dataclass(frozen=True, slots=True)
class Figure:
    """`note` is the comparison (with data parallelism, the target, the prediction); it is
    green or red only where good and bad are certain."""

    label: str
    value: str
    note: str = ""
    tone: Tone = "gray"
    help: str = ""


def figures(row: Sequence[Figure], key: str) -> None:
    """Cards side by side, as many in a row as fit."""
    with st.container(key=f"figures-{key}"):
        for figure in row:
            st.metric(
                figure.label,
                figure.value,
                delta=figure.note or None,
                delta_color=figure.tone,
                delta_arrow="off",
                help=figure.help or None,
                border=True,
                height="stretch",
            )


def empty_state(title: str, advice: str, to: Page | None = None, label: str = "") -> None:
    """A quiet box with a sentence and, where it helps, the button that leads `to` a page."""
    with st.container(border=True, key=f"empty-{title}", gap="small"):
        st.markdown(f"**{title}**")
        st.caption(advice)
        if to is not None and st.button(
            label or f"Go to {to.path.capitalize()}",
            icon=":material/arrow_forward:",
            type="primary",
            key=f"go-{title}",
        ):
            st.switch_page(to.value)


@contextmanager
def missing(title: str, to: Page, label: str, *, headed: bool = False) -> Iterator[None]:
    """Say that what a link names does not exist instead of raising `NotFound`; `label` links to
    page `to`. `headed`: the page's head stands already. Also a decorator of pages."""
    try:
        yield
    except NotFound as error:
        if not headed:
            page_header(title)
        empty_state(plain(sentence(str(error))), GONE, to, label)
