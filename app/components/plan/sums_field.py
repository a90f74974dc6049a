"""How the replicas of a stage code the gradients that they sum: asked as a codec with its
settings."""

import streamlit as st

from app.session.state import Param, bound
from backend.pipeline.codecs.catalog import AUTO
from backend.planning.codec_of_sums import ROUNDED
from backend.planning.thresholds import LEAST, Thresholds

HELP = (
    f"Where a stage has replicas. {' or '.join(f'`{name}`' for name in ROUNDED)}: each gives its "
    f"gradients in two bytes a number. `{AUTO}`: so where it is faster, by the profile's speeds. "
    f"`{Thresholds().words}`: of each tensor the largest half percent alone, by thresholds that "
    "are made anew every 1,000 updates; the rest is added to the next update's. Tensors of fewer "
    f"than {LEAST} numbers go whole. Empty: all as they are. Compare what is learned."
)


def sums_field() -> str:
    """The codec as it is written, which `Question` reads."""
    written = st.text_input(
        "Codec of sums", placeholder="all gradients", help=HELP, **bound(Param.CODEC_OF_SUMS)
    )
    return written or ""
