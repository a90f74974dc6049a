"""A white card on a thin border: a title, a quiet remark, and what it holds."""

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st


@contextmanager
def card(title: str, remark: str = "") -> Iterator[None]:
    """Everything drawn inside the block is in the card."""
    with st.container(border=True, gap="small"):
        st.markdown(f"**{title}**" + (f" &ensp;:gray[:small[{remark}]]" if remark else ""))
        yield
