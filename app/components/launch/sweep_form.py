"""A training over several values of some settings: one action, many runs."""

from typing import Any, cast

import streamlit as st

from app.components.launch.fields import Fields
from app.components.launch.stop_form import BETTER
from app.formats import count, plain
from app.session.state import Param, bound
from backend.runs.request.spec import TrainSpec
from backend.runs.sweeps.axes import HINT, read_axis
from backend.runs.sweeps.sweep import Early, SweepSpec

EXAMPLE = "lr = 0.1, 0.01, 0.001\nschedule = pipedream, gpipe"
NOTE = (
    "One setting per line, with its values; all combinations are run. A random search also takes "
    "ranges: lr = log:0.0001:0.1, momentum = even:0.5:0.99, seed = whole:0:99"
)


def sweep_form(spec: TrainSpec, fields: Fields) -> SweepSpec | None:
    """The sweep that is asked for; None where nothing varies, or it cannot be."""
    with st.expander("Sweep: many runs over values of settings"):
        left, right = st.columns(2)
    with left:
        text = st.text_area(
            "Vary", help=NOTE, placeholder=EXAMPLE, height=130, **_key(fields, Param.VARY)
        )
        st.caption(plain(HINT))
        draws = fields.whole(
            "Random runs", 0, Param.DRAWS, "0 = every combination of the values", least=0
        )
    with right:
        early = _early(fields)
    lines = [line for line in (text or "").splitlines() if line.strip()]
    if not lines:
        return None
    sweep = fields.read(
        lambda: _counted(SweepSpec(spec, tuple(map(read_axis, lines)), draws, spec.seed, early)),
        None,
    )
    if sweep is not None:
        st.caption(f"{count(len(sweep.points()), 'run')} will be queued, as one sweep.")
    return sweep


def _counted(sweep: SweepSpec) -> SweepSpec:
    """The sweep, whose settings can be varied so. Raises `InvalidInput`."""
    sweep.points()
    return sweep


def _early(fields: Fields) -> Early:
    first = fields.switch(
        "End the others once one reaches the target",
        False,
        Param.STOP_FIRST,
        "The target is the accuracy or the loss at which a training stops, above",
    )
    median = fields.switch(
        "End runs that fall behind the median",
        False,
        Param.STOP_BEHIND,
        "Vizier's median rule: a run ends when its best value so far is worse than the median of "
        "the averages that ended runs had up to the same evaluation; three must have ended",
    )
    metric = fields.text(
        "Best by", Early().metric, Param.SWEEP_METRIC, "On held-out data, as the metric of Patience"
    )
    better = fields.choice("Its better values", BETTER, "", Param.SWEEP_BETTER)
    grace = fields.whole("Least evaluations of each run", Early().grace, Param.GRACE)
    return Early(first, median, metric.strip(), cast(Any, better), grace)


def _key(fields: Fields, param: Param) -> dict[str, Any]:
    return bound(param) if fields.bound else {"key": f"launch-{param.value}"}
