"""A run to be launched again: every value is there, and in the URL once it is changed."""

from dataclasses import replace
from typing import Any, cast

import streamlit as st

from app import services
from app.components.launch.data_form import data_form
from app.components.launch.launch_form import HELP_LOSS, TITLE_LOSS
from app.components.launch.place_form import place_form
from app.components.launch.update_form import update_form
from app.components.shell.allowed import closed, why_not
from app.session import state
from app.session.state import Page, Param
from backend.planning.optimizers import OPTIMIZERS
from backend.runs.request.spec import ProfileSpec, RunSpec, TrainSpec
from backend.runs.run import Run

BOUND: dict[str, Any] = {"bind": "query-params"}


def again_form(spec: RunSpec, name: str, origin: Run | None) -> None:
    """Submits a run and opens its page. Raises `InvalidInput` on values out of range."""
    title = st.text_input("Name", name, max_chars=120, key=Param.NAME.value, **BOUND)
    left, right = st.columns(2)
    with left:
        first = _profile_left(spec) if isinstance(spec, ProfileSpec) else _train_left(spec)
    with right:
        second = _profile_right(spec) if isinstance(spec, ProfileSpec) else _train_right(spec)
    if isinstance(spec, TrainSpec):
        second["data"] = data_form(spec.data, bound=True)
        second["more"] = update_form(spec.optimizer, spec.precision, bound=True)
        second["where"] = place_form(spec.plan, spec)
    barred = why_not()
    if st.button("Start run", type="primary", icon=":material/play_arrow:", **closed(barred)):
        changed = _changed(spec, first | second)
        run = services.backend().runs.submit(changed, title, origin.id if origin else None)
        state.go(Page.RUN, id=run.id)


def _changed(spec: RunSpec, values: dict[str, Any]) -> RunSpec:
    """The spec with these values; what is not asked about stays as it was."""
    if isinstance(spec, ProfileSpec):
        return replace(spec, **values)
    return replace(
        spec,
        data=values["data"],
        optimizer=replace(
            values["more"].optimizer,
            name=values["optimizer"],
            learning_rate=values["learning_rate"],
        ),
        precision=values["more"].precision,
        epochs=values["epochs"],
        target_accuracy=values["target"] / 100 if values["target"] else None,
        target_loss=values["target_loss"] or None,
        seed=values["seed"],
        nodes=values["where"].nodes,
        emulate=values["where"].emulate,
    )


def _train_left(spec: TrainSpec) -> dict[str, Any]:
    names = list(OPTIMIZERS)
    return {
        "epochs": _whole("Epochs, at most", spec.epochs, Param.EPOCHS),
        "optimizer": st.selectbox(
            "Optimizer",
            names,
            index=names.index(spec.optimizer.name),
            key=Param.OPTIMIZER.value,
            **BOUND,
        ),
        "seed": _whole("Seed", spec.seed, Param.SEED, least=0),
    }


def _train_right(spec: TrainSpec) -> dict[str, Any]:
    return {
        "target": st.number_input(
            "Stop at accuracy, %",
            0.0,
            100.0,
            100 * (spec.target_accuracy or 0.0),
            step=1.0,
            format="%.1f",
            help="On held-out data; 0 = never stop early",
            key=Param.TARGET.value,
            **BOUND,
        ),
        "target_loss": st.number_input(
            TITLE_LOSS,
            0.0,
            value=spec.target_loss or 0.0,
            format="%.4f",
            help=HELP_LOSS,
            key=Param.TARGET_LOSS.value,
            **BOUND,
        ),
        "learning_rate": st.number_input(
            "Learning rate",
            1e-6,
            10.0,
            spec.optimizer.learning_rate,
            format="%.5f",
            key=Param.RATE.value,
            **BOUND,
        ),
    }


def _profile_left(spec: ProfileSpec) -> dict[str, Any]:
    return {"microbatch": _whole("Samples per microbatch", spec.microbatch, Param.MICROBATCH)}


def _profile_right(spec: ProfileSpec) -> dict[str, Any]:
    return {"repetitions": _whole("Repetitions", spec.repetitions, Param.REPETITIONS)}


def _whole(label: str, value: int, param: Param, least: int = 1) -> int:
    found = st.number_input(label, min_value=least, value=value, step=1, key=param.value, **BOUND)
    return int(cast(int, found))
