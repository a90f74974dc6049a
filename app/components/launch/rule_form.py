"""By which rule weights are updated, and its learning rate: the rate that is usual for the rule,
until a person types one."""

from typing import cast

import streamlit as st

from app.components.launch.fields import Fields
from app.session.state import Param
from backend.planning.optimizers import OPTIMIZERS, OptimizerName
from backend.runs.request.optimizer_spec import OptimizerSpec


def rule_field(rule: OptimizerSpec, fields: Fields) -> OptimizerName:
    """The rule that is chosen, `rule`'s to begin with. Another one takes the rate along that
    `rate_field` draws."""
    names: dict[str, str] = {
        name: name if fields.bound else kind.title for name, kind in OPTIMIZERS.items()
    }

    def other() -> None:
        now, rate = (st.session_state[fields.key(p)] for p in (Param.OPTIMIZER, Param.RATE))
        if rate == usual_rate(rule, name) and rate != st.session_state.get(_typed(fields)):
            st.session_state[fields.key(Param.RATE)] = usual_rate(rule, now)

    chosen = fields.choice("Optimizer", names, rule.name, Param.OPTIMIZER, on_change=other)
    name = cast(OptimizerName, chosen)
    return name


def rate_field(rule: OptimizerSpec, name: OptimizerName, fields: Fields) -> float:
    """The learning rate under the rule `name`."""

    def typed() -> None:
        st.session_state[_typed(fields)] = st.session_state[fields.key(Param.RATE)]

    return fields.real(
        "Learning rate",
        usual_rate(rule, name),
        Param.RATE,
        least=1e-6,
        most=10.0,
        step=0.01,
        format="%.5f",
        on_change=typed,
    )


def usual_rate(rule: OptimizerSpec, name: OptimizerName) -> float:
    """Where the rate of the rule `name` begins: that of `rule` for its own."""
    return rule.learning_rate if name == rule.name else OPTIMIZERS[name].rate


def _typed(fields: Fields) -> str:
    """The key of the rate that was typed last."""
    return f"{fields.key(Param.RATE)}-typed"
