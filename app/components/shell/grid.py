"""A list of things with real controls in its cells: links, badges, buttons."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

import streamlit as st

from app.formats import NOTHING, ago, plain

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """`draw` fills the cell of one thing; `width` is relative to the other columns; `head`
    fills the heading where the title alone is not enough."""

    title: str
    width: float
    draw: Callable[[T], object]
    head: Callable[[], object] | None = None


def text(title: str, width: float, words: Callable[[T], str]) -> Column[T]:
    """A column of words, which may hold Markdown."""
    return Column(title, width, lambda thing: st.markdown(words(thing)))


def small(title: str, width: float, words: Callable[[T], str]) -> Column[T]:
    """A column of small words, shown as they are written."""
    return text(title, width, lambda thing: f":small[{plain(words(thing) or NOTHING)}]")


def when(title: str, width: float, moment: Callable[[T], datetime | None]) -> Column[T]:
    """A column that says how long ago something was."""
    return text(title, width, lambda thing: f":gray[{ago(moment(thing))}]")


def grid(key: str, columns: Sequence[Column[T]], things: Sequence[T]) -> None:
    """A heading row and one row per thing."""
    widths = [column.width for column in columns]
    with st.container(key=f"grid-{key}", gap=None):
        for cell, column in zip(
            st.columns(widths, gap="small", vertical_alignment="center"), columns, strict=True
        ):
            with cell:
                column.head() if column.head else st.caption(column.title)
        for thing in things:
            cells = st.columns(widths, gap="small", vertical_alignment="center")
            for cell, column in zip(cells, columns, strict=True):
                with cell:
                    column.draw(thing)
