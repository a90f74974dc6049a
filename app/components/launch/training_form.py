"""The values of a training."""

from dataclasses import replace
from typing import Any, cast

import streamlit as st

from app.components.launch.data_form import data_form
from app.components.launch.fields import Fields
from app.components.launch.optimizer_form import optimizer_form
from app.components.launch.place_form import place_form
from app.components.launch.planned_fields import follow_plan
from app.components.launch.rule_form import rate_field, rule_field
from app.components.launch.stop_form import stop_form
from app.components.launch.tracker_form import tracker_form
from app.components.launch.weights_form import weights_form
from app.formats import plain
from app.session.state import Param
from backend.pipeline.schedules.catalog import schedule
from backend.planning.sites import OTHER_LABELS
from backend.profiles.state_precision import STATE_PRECISIONS
from backend.runs.request.local_heads import LOCAL_HEADS
from backend.runs.request.spec import TrainSpec
from backend.runs.request.stopping import check_targets

PRECISIONS = {
    "float32": "float32",
    "bfloat16": "bfloat16 (compute only)",
    "float16": "float16 (compute only, scaled loss)",
}


def training_form(spec: TrainSpec, fields: Fields) -> TrainSpec:
    """`spec` with the values that are chosen."""
    follow_plan(spec, fields)
    left, right = st.columns(2)
    with left:
        optimizer = rule_field(spec.optimizer, fields)
        rate = rate_field(spec.optimizer, optimizer, fields)
        seed = fields.whole("Seed", spec.seed, Param.SEED, least=0)
        spec = weights_form(spec, fields)
    with right:
        epochs = fields.whole("Epochs, at most", spec.epochs, Param.EPOCHS)
        accuracy = fields.real(
            "Stop at accuracy, %",
            100 * (spec.target_accuracy or 0.0),
            Param.TARGET,
            "On held-out data; 0 = never stop early",
            most=100.0,
            step=1.0,
            format="%.1f",
        )
        loss = fields.real(
            "Stop at loss",
            spec.target_loss or 0.0,
            Param.TARGET_LOSS,
            "Held-out loss, at or below which it ends; 0 = never. A perplexity p is a loss of ln p",
            step=0.01,
            format="%.4f",
        )
        evaluate = fields.whole(
            "Evaluate every, updates",
            spec.evaluate,
            Param.EVALUATE,
            "Evaluates held-out data also after so many updates; 0 = only after each epoch",
            least=0,
        )
    rule = replace(spec.optimizer, name=optimizer, learning_rate=rate)
    chosen = replace(
        spec,
        epochs=epochs,
        optimizer=rule,
        seed=seed,
        target_accuracy=accuracy / 100 if accuracy else None,
        target_loss=loss or None,
        evaluate=evaluate,
    )
    with right:
        fields.read(lambda: check_targets(chosen), None)
        chosen = _local_head(chosen, fields)
    with st.container():  # one place of the page, so that what is open below stays open
        chosen = replace(chosen, data=data_form(spec.data, fields))
    if spec.plan.is_apart:
        st.caption(plain(OTHER_LABELS))
    chosen = optimizer_form(stop_form(chosen, fields), fields)
    return tracker_form(place_form(_precision_form(chosen, fields)), fields)


def _local_head(spec: TrainSpec, fields: Fields) -> TrainSpec:
    """From which head each stage learns; asked where stages have losses of their own."""
    if not schedule(spec.plan.schedule).local:
        return replace(spec, local_head="")
    names = {"": "As suits the data"} | {name: kind.title for name, kind in LOCAL_HEADS.items()}
    note = "What each stage but the last learns from, in place of a gradient of the next one"
    chosen = fields.choice("Local head", names, spec.local_head, Param.LOCAL_HEAD, note)
    return replace(spec, local_head=cast(Any, chosen))


def _precision_form(spec: TrainSpec, fields: Fields) -> TrainSpec:
    """In which precision updates are made, and by whom."""
    with st.expander("Precision, sharded state"):
        left, right = st.columns(2)
    kinds: dict[str, str] = {name: kind.title for name, kind in STATE_PRECISIONS.items()}
    with left:
        precision = fields.choice("Precision", PRECISIONS, spec.precision, Param.PRECISION)
        sharded = _sharded(spec, fields)
    with right:
        kept = fields.choice(
            "Precision of state", kinds, spec.state_precision, Param.STATE_PRECISION
        )
    return replace(
        spec,
        plan=replace(spec.plan, shard_state=sharded),
        precision=cast(Any, precision),
        state_precision=cast(Any, kept),
    )


def _sharded(spec: TrainSpec, fields: Fields) -> bool:
    """Whether state is sharded over replicas; asked where there are some."""
    if max(spec.plan.partition.replicas) == 1:
        return False
    note = (
        "Each replica of a stage keeps a part of its optimizer's state and masters, updates that "
        "part of the weights and sends it to the others: less memory, more sent."
    )
    return fields.switch("Sharded state", spec.plan.shard_state, Param.SHARD_STATE, note)
