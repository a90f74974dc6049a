"""The row of figures that answers the first question before any chart."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import streamlit as st

Tone = Literal["gray", "green", "red", "orange"]


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
