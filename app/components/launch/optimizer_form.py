"""How weights are updated beyond the rule and its rate."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import streamlit as st

from app.components.launch.fields import Fields
from app.components.launch.rate_picture import rate_picture
from app.session.state import Param
from backend.planning.optimizers import OPTIMIZERS
from backend.runs.request.groups import groups_text, read_groups
from backend.runs.request.optimizer_checks import (
    check_clipping,
    check_warm_up,
    with_betas,
    with_eps,
)
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import TrainSpec

DECAYS = {
    "none": "constant",
    "step": "a tenth every 30 epochs",
    "linear": "linear to 0",
    "cosine": "cosine to 0",
    "one-cycle": "one cycle: up and down",
    "inverse-sqrt": "inverse square root",
}
DECAYED = {
    "": "usual for the optimizer",
    "all": "all weights",
    "matrices": "all but norms and biases",
}
CLIP_BY = {"model": "the whole model's gradient", "stage": "each stage's own gradient"}


def optimizer_form(spec: TrainSpec, fields: Fields) -> TrainSpec:
    """`spec` with the values that are chosen, and a picture of its rate."""
    rule = spec.optimizer
    with st.expander("Rate over the updates, weight decay, clipping, averaged weights"):
        picture = st.container()
        left, right = st.columns(2)
    with left:
        rule = _groups(_decay(_rate(rule, spec, fields), fields), fields)
    with right:
        rule = _clipping(_constants(rule, fields), fields, spec.plan.schedule)
        rule = _average(rule, fields)
    chosen = replace(spec, optimizer=rule)
    with picture:
        rate_picture(chosen)
    return chosen


def _rate(rule: OptimizerSpec, spec: TrainSpec, fields: Fields) -> OptimizerSpec:
    decay = fields.choice("Rate", DECAYS, rule.decay, Param.DECAY)
    epochs = fields.real("Warm-up, epochs", rule.warm_up, Param.WARM_UP)
    updates = fields.whole(
        "Warm-up, updates",
        rule.warm_up_updates,
        Param.WARM_UP_UPDATES,
        "In place of epochs, as transformers counts them: the first update has a rate of 0",
        least=0,
    )
    rule = replace(rule, decay=cast(Any, decay), warm_up=epochs, warm_up_updates=updates)
    fields.read(lambda: check_warm_up(rule, spec.epochs, spec.stop.updates), None)
    return rule


def _decay(rule: OptimizerSpec, fields: Fields) -> OptimizerSpec:
    decay = fields.real("Weight decay", rule.weight_decay, Param.WEIGHT_DECAY)
    decayed = fields.choice("Weight decay is for", DECAYED, rule.decayed, Param.DECAYED)
    return replace(rule, weight_decay=decay, decayed=cast(Any, decayed))


def _groups(rule: OptimizerSpec, fields: Fields) -> OptimizerSpec:
    text = fields.text(
        "Groups of weights",
        groups_text(rule.groups),
        Param.GROUPS,
        "Weights with another rate, and decay, than the others: NAMES=FACTOR or "
        "NAMES=FACTOR,DECAY, with ; between them. A module's path stands for all below it",
        placeholder="head=10; *.bias=2,0",
    )
    groups = fields.read(lambda: read_groups(text.split(";")), rule.groups)
    return replace(rule, groups=groups)


def _constants(rule: OptimizerSpec, fields: Fields) -> OptimizerSpec:
    """What the chosen rule has; what only another one has is left out."""
    kind, chosen = OPTIMIZERS[rule.name], replace(rule, betas=None, eps=None)
    if rule.name == "momentum":
        momentum = fields.real("Momentum", rule.momentum, Param.MOMENTUM, most=0.9999)
        chosen = replace(chosen, momentum=momentum)
    if kind.betas is not None:
        betas = fields.text("Betas", _said(rule.betas), Param.BETAS, placeholder=_said(kind.betas))
        chosen = fields.read(lambda: with_betas(chosen, betas), chosen)
    if kind.eps is not None:
        eps = _said((rule.eps,) if rule.eps else None)
        eps = fields.text("Eps", eps, Param.EPS, placeholder=f"{kind.eps:g}")
        chosen = fields.read(lambda: with_eps(chosen, eps), chosen)
    return chosen


def _clipping(rule: OptimizerSpec, fields: Fields, schedule_name: str) -> OptimizerSpec:
    clip = fields.real(
        "Clip gradients at",
        rule.clip_norm or 0.0,
        Param.CLIP,
        "The largest norm; 0 = no clipping",
    )
    by = fields.choice(
        "By the norm of",
        CLIP_BY,
        rule.clip_by,
        Param.CLIP_BY,
        "Schedules that never drain have no gradient norm of the whole model",
    )
    rule = replace(rule, clip_norm=clip or None, clip_by=cast(Any, by))
    fields.read(lambda: check_clipping(rule, schedule_name), None)
    return rule


def _average(rule: OptimizerSpec, fields: Fields) -> OptimizerSpec:
    share = fields.real(
        "Averaged weights (EMA)",
        rule.ema,
        Param.EMA,
        "The share of the average that stays at each update, such as 0.999; 0 = no average. The "
        "averaged weights are evaluated and saved as the trained model",
        most=0.99999,
        step=0.001,
    )
    return replace(rule, ema=share)


def _said(numbers: Sequence[float] | None) -> str:
    return ", ".join(f"{number:g}" for number in numbers or ())
