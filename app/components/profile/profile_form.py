"""Ask for a profile: of which size, with which parameters, how and where."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from app import services
from app.components.runs.pool_form import pool_choice
from app.components.shell.allowed import closed, why_not
from app.formats import plain
from app.session import state
from app.session.state import Page
from backend.codec import from_plain
from backend.definitions.definition import Definition
from backend.definitions.parameters import Parameter, Value
from backend.errors import InvalidInput
from backend.profiles.devices import DEVICES
from backend.runs.request.spec import PoolSpec, ProfileSpec
from backend.whole import is_whole

LAYERS = {"": "as suits the file", "fine": "modules without children", "blocks": "whole blocks"}
PRECISION = {"float32": "float32", "bfloat16": "bfloat16 (autocast)"}


def profile_form(definition: Definition) -> None:
    """Opens the kept profile of that very question, else submits a run and opens its page.

    Raises `StageflowError` on values that cannot be used.
    """
    parameters = services.backend().definitions.describe(definition.id).parameters
    with st.form(f"profile-form-{definition.id}", border=False):
        st.caption(
            f"Times every layer of **{plain(definition.label)}** on a node, forward and "
            "backward, and takes the medians. Plan and train at the same microbatch size."
        )
        left, right = st.columns(2)
        microbatch = left.number_input("Samples per microbatch", min_value=1, value=16, step=1)
        repetitions = right.number_input("Repetitions", min_value=1, value=20, step=1)
        further = left.text_input(
            "Further sizes",
            placeholder="1, 4, 64",
            help="A profile each, in the same job, so that planners can choose between sizes.",
        )
        layers = right.selectbox("Layers", list(LAYERS), format_func=LAYERS.__getitem__)
        precision = left.selectbox("Precision", list(PRECISION), format_func=PRECISION.__getitem__)
        peak = right.selectbox("Times", ["", *DEVICES], format_func=_where)
        values = _parameter_fields(parameters, f"parameter-{definition.id}")
        by_parts = st.checkbox(
            "Measure by parts",
            help="One layer is made and timed after the other, equal ones a few times. A model "
            "that does not fit is always measured so.",
        )
        pool = pool_choice("", f"profile-{definition.id}")
        again = st.checkbox("Measure again, even if this profile exists")
        barred = why_not(definition.project_id)
        if not st.form_submit_button("Start profiling", type="primary", **closed(barred)):
            return
    fields = {
        "definition_id": definition.id,
        "microbatch": int(microbatch),
        "repetitions": int(repetitions),
        "further": sizes(further),
        "granularity": layers,
        "precision": precision,
        "peak": peak,
        "by_parts": by_parts,
        "parameters": values,
    }
    spec: ProfileSpec = from_plain(ProfileSpec, fields)
    _start(definition, replace(spec, pool=PoolSpec(pool) if pool else None), again)


def _start(definition: Definition, spec: ProfileSpec, again: bool) -> None:
    backend = services.backend()
    kept = () if again else backend.profiles.measured(spec, backend.nodes.list())
    if kept:
        state.notify("This profile has been measured already")
        state.go(Page.PROFILE, id=kept[-1].id)
    run = backend.runs.submit(spec, f"profile {definition.name}")
    state.go(Page.RUN, id=run.id)


def sizes(text: str) -> list[int]:
    """Whole numbers between commas or spaces; raises `InvalidInput` naming what is none."""
    words = text.replace(",", " ").split()
    for word in words:
        if not (is_whole(word) and int(word)):
            raise InvalidInput(
                f"further sizes: {word[:20]!r} is not a number of samples", "For example: 1, 4"
            )
    return [int(word) for word in words]


def _where(peak: str) -> str:
    return f"computed for {DEVICES[peak].title}" if peak else "measured on a node"


def _parameter_fields(parameters: Sequence[Parameter], key: str) -> dict[str, Value]:
    """Draw a field each; the values that differ from their defaults."""
    if not parameters:
        return {}
    st.caption("Parameters of the model")
    columns = st.columns(2)
    given = {}
    for number, parameter in enumerate(parameters):
        with columns[number % 2]:
            value = _field(parameter, f"{key}-{parameter.name}")
        if value != parameter.default:
            given[parameter.name] = value
    return given


def _field(parameter: Parameter, key: str) -> Value:
    name, default = parameter.name, parameter.default
    match parameter.kind:
        case "bool":
            return st.checkbox(name, bool(default), key=key)
        case "int":
            return int(st.number_input(name, value=int(default), step=1, key=key))
        case "float":
            return float(st.number_input(name, value=float(default), format="%.6g", key=key))
        case "str" if parameter.choices:
            index = parameter.choices.index(str(default))
            return st.selectbox(name, parameter.choices, index=index, key=key)
        case "str":
            return st.text_input(name, str(default), key=key)
