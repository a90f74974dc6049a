"""A definition's parameters as the fields of a form."""

from collections.abc import Sequence

import streamlit as st

from backend.definitions.parameters import Parameter, Value

FLOATS = "%.6g"


def parameter_fields(parameters: Sequence[Parameter], key: str) -> dict[str, Value]:
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
            return float(st.number_input(name, value=float(default), format=FLOATS, key=key))
        case "str" if parameter.choices:
            index = parameter.choices.index(str(default))
            return st.selectbox(name, parameter.choices, index=index, key=key)
        case "str":
            return st.text_input(name, str(default), key=key)
