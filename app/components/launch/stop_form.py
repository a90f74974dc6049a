"""When a training ends before its last epoch, beside its target."""

from dataclasses import replace
from typing import Any, cast

import streamlit as st

from app.components.launch.fields import Fields
from app.session.state import Param
from backend.runs.request.spec import StopSpec, TrainSpec
from backend.runs.request.stopping import check_stop

BETTER = {"": "usual for the metric", "larger": "larger", "smaller": "smaller"}


def stop_form(spec: TrainSpec, fields: Fields) -> TrainSpec:
    """`spec` with the values that are chosen."""
    stop = spec.stop
    with st.expander("Patience, the best checkpoint, most updates, most time"):
        left, right = st.columns(2)
    with left:
        patience = fields.whole(
            "Patience, evaluations",
            stop.patience,
            Param.PATIENCE,
            "Stop so many evaluations after the best one; 0 = never",
            least=0,
        )
        metric = fields.text(
            "Metric",
            stop.metric,
            Param.WATCH,
            "Of held-out data: held-out loss, accuracy, perplexity, or one of the model's own",
        )
        better = fields.choice("Better values", BETTER, stop.better, Param.BETTER)
    with right:
        updates = fields.whole(
            "Updates, at most", stop.updates, Param.MAX_UPDATES, "0 = no limit", least=0
        )
        seconds = fields.real(
            "Seconds, at most",
            stop.seconds,
            Param.MAX_SECONDS,
            "Since the run started, checked after each evaluation; 0 = no limit",
            step=60.0,
            format="%.0f",
        )
        keeps = fields.switch(
            "Keep the checkpoint of the best evaluation",
            spec.checkpoints.best,
            Param.KEEP_BEST,
            "Beside the newest ones; the metric chosen here decides",
        )
    chosen = StopSpec(patience, metric.strip(), cast(Any, better), updates, seconds)
    with left:
        fields.read(lambda: check_stop(chosen, keeps), None)
    return replace(spec, stop=chosen, checkpoints=replace(spec.checkpoints, best=keeps))
