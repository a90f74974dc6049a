"""What a run was asked for, as a table."""

from collections.abc import Mapping

import streamlit as st

from app.components.shell.layout import card
from app.formats import plain, shorten
from backend.comparison.runs import as_usual, chosen
from backend.runs.request.spec import TrainSpec

MOST = 200
"""Characters of a value: a chat template has thousands."""
MOST_ROWS, TALLEST = 16, 600  # from more rows on a table scrolls, in so many pixels


def parameter_view(spec: TrainSpec) -> None:
    """What somebody chose of a training."""
    with card("Parameters", "beside the plan, where they are not the usual ones"):
        parameter_table(chosen(spec))
        if usual := as_usual(spec):
            said = ", ".join(f"{name} {value}" for name, value in usual.items())
            st.caption(f"As usual: {plain(shorten(said, MOST))}.")


def parameter_table(found: Mapping[str, str]) -> None:
    """A row for each; nothing where there is none."""
    if not found:
        return
    values = [shorten(value, MOST) for value in found.values()]
    st.dataframe(
        {"parameter": list(found), "value": values},
        hide_index=True,
        height="content" if len(values) <= MOST_ROWS else TALLEST,
        key="parameters",
        alt="What the run was asked for",
    )
