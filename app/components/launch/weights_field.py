"""Which weights a training begins with: drawn by the seed, or a file that is kept."""

import streamlit as st

from app import services


def weights_field() -> int | None:
    """The id of the chosen file; None = drawn by the seed. No field where no file is kept."""
    kept = {each.id: each.label for each in services.backend().definitions.weights()}
    if not kept:
        return None
    return st.selectbox(
        "Begin with", [None, *kept], format_func=lambda i: kept[i] if i else "weights by the seed"
    )
