"""Ask how updates are made beyond the rule and its rate, and in which precision."""

from dataclasses import dataclass, replace
from typing import Literal, cast

import streamlit as st

from app.components.launch.fields import Fields
from app.session.state import Param
from backend.runs.request.spec import OptimizerSpec

Precision = Literal["float32", "bfloat16", "float16"]
PRECISIONS = {
    "float32": "float32",
    "bfloat16": "bfloat16 (compute alone)",
    "float16": "float16 (compute alone, scaled loss)",
}
DECAYS = {
    "none": "stays",
    "step": "a tenth every 30 epochs",
    "linear": "straight to 0",
    "cosine": "to 0 as a cosine",
}
Decay = Literal["none", "step", "linear", "cosine"]


@dataclass(frozen=True, slots=True)
class Update:
    """`optimizer` with what was asked for; its rule and rate are as they were given."""

    optimizer: OptimizerSpec
    precision: Precision


def update_form(spec: OptimizerSpec, precision: Precision, *, bound: bool) -> Update:
    """What is chosen. `bound`: every value stands in the URL."""
    fields = Fields(bound)
    with st.expander("Precision, decay, clipping, warm-up"):
        left, right = st.columns(2)
    with left:
        named = fields.choice(
            "Precision", list(PRECISIONS), precision, Param.PRECISION, PRECISIONS.get
        )
        shrinks = fields.real("Weight decay", spec.weight_decay, Param.WEIGHT_DECAY)
        clip = fields.real(
            "Clip gradients at",
            spec.clip_norm or 0.0,
            Param.CLIP,
            "Norm of the whole model's gradient; 0 = never. For schedules that flush",
        )
    with right:
        warm_up = fields.real("Warm-up, epochs", spec.warm_up, Param.WARM_UP)
        decay = fields.choice("Rate afterwards", list(DECAYS), spec.decay, Param.DECAY, DECAYS.get)
    chosen = replace(
        spec,
        weight_decay=shrinks,
        clip_norm=clip or None,
        warm_up=warm_up,
        decay=cast(Decay, decay),
    )
    return Update(chosen, cast(Precision, named))
