"""What the colours of a chart stand for, in lines as wide as the card: Plotly's own legend is as
wide as its bars, and hides what has no room beside them."""

from collections.abc import Mapping
from html import escape

import streamlit as st

_SWATCH = "display: inline-block; width: 10px; height: 10px; border-radius: 3px; margin-right: 5px"
_WORD = (
    '<span style="white-space: nowrap; margin-right: 8px; font-size: 13px">'
    f'<span style="background: {{1}}; {_SWATCH}"></span>{{0}}</span>'
)


def legend(colours: Mapping[str, str]) -> None:
    """Each word behind its colour."""
    st.html(" ".join(_WORD.format(escape(word), colour) for word, colour in colours.items()))
