"""How a model's equal blocks are shown: folded, block by block, layer by layer."""

import streamlit as st

from app.charts.groups import Detail, details
from app.session.state import Param, bound
from backend.profiles.profile import ModelGraph

HELP = (
    "Equal blocks stand behind each other with the same kinds and sizes. Folded, they are one item "
    "with their number."
)


def detail_choice(graph: ModelGraph) -> Detail:
    """Offer it where blocks are equal and layers many; else every layer is shown."""
    offered = details(graph)
    if len(offered) == 1:
        return offered[0]
    chosen = st.segmented_control(
        "Equal blocks",
        [each.value for each in offered],
        default=Detail.FOLDED.value,
        required=True,
        help=HELP,
        **bound(Param.DETAIL),
    )
    return Detail(chosen) if chosen else Detail.FOLDED
