"""How the replicas of a stage code the gradients that they sum: asked as a codec with its
settings."""

import streamlit as st

from app.session import state
from app.session.state import Param, bound
from backend.planning.thresholds import LEAST, Thresholds

HELP = (
    "Where a stage has replicas: each sends of every gradient the largest numbers alone, and adds "
    f"the rest to the next update's. Empty: all. For example `{Thresholds().words}`: half a "
    "percent of each tensor, by thresholds that are made anew every 1,000 updates. Tensors of "
    f"fewer than {LEAST} numbers go whole. Compare what is learned."
)


def sums_field() -> str:
    """The codec as it is written, which `Question` reads."""
    st.text_input(
        "Codec of sums", placeholder="all gradients", help=HELP, **bound(Param.CODEC_OF_SUMS)
    )
    return state.text(Param.CODEC_OF_SUMS)
