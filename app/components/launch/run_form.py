"""A run to be launched: every value can be changed before it is submitted."""

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from app import services
from app.components.launch.fields import Fields
from app.components.launch.sweep_form import sweep_form
from app.components.launch.training_form import training_form
from app.components.shell.allowed import closed, why_not
from app.formats import count, plain
from app.session import state
from app.session.state import Page, Param
from backend.errors import InvalidInput
from backend.planning.plan import Plan
from backend.runs.request.combinations import check_combinations
from backend.runs.request.spec import ProfileSpec, RunSpec, TrainSpec


def run_form(
    spec: RunSpec,
    name: str,
    *,
    origin: int | None = None,
    save_plan: Callable[[], int] | None = None,
) -> None:
    """Submits a run and opens its page. Raises `InvalidInput` on values out of range.

    `origin` is the run that is launched again. `save_plan` stores the plan and gives its id, where
    the plan is not stored yet; the values are in the URL where it is.
    """
    fields = Fields(bound=save_plan is None)
    sweep = None
    name = fields.text("Name", name, Param.NAME, max_chars=120)
    if isinstance(spec, ProfileSpec):
        spec = _profiling_form(spec, fields)
    else:
        spec = training_form(spec, fields)
        sweep = sweep_form(spec, fields)
    if fields.faults:
        st.caption(plain(f"Set this right first: {'; '.join(fields.faults)}."))
    barred = why_not() or next(iter(fields.faults), None)
    label = f"Start {count(len(sweep.points()), 'run')}" if sweep else "Start run"
    if st.button(label, type="primary", icon=":material/play_arrow:", **closed(barred)):
        if save_plan is not None and isinstance(spec, TrainSpec):
            spec = replace(spec, plan_id=save_plan())
        if sweep is not None and isinstance(spec, TrainSpec):
            started = services.backend().sweeps.start(replace(sweep, base=spec), name)
            state.go(Page.SWEEPS, id=started.id)
        run = services.backend().runs.submit(spec, name, origin)
        state.go(Page.RUN, id=run.id)


def _profiling_form(spec: ProfileSpec, fields: Fields) -> ProfileSpec:
    left, right = st.columns(2)
    with left:
        microbatch = fields.whole("Samples per microbatch", spec.microbatch, Param.MICROBATCH)
    with right:
        repetitions = fields.whole("Repetitions", spec.repetitions, Param.REPETITIONS)
    return replace(spec, microbatch=microbatch, repetitions=repetitions)


def why_not_run(definition_id: int, plan: Plan) -> str | None:
    """What the runtime cannot do of `plan`, and what to do about it; None where it can run it."""
    try:
        check_combinations(TrainSpec(definition_id, plan))
    except InvalidInput as fault:
        return f"{fault}. {fault.advice}"
    return None
