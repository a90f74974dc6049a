"""The learning rate of a training that is to be launched, drawn over its updates."""

import streamlit as st

from app.charts.rate import rate_chart, rate_points
from backend.pipeline.schedules.catalog import schedule
from backend.runs.request.spec import TrainSpec

ASSUMED = 100
"""Updates of an epoch where the number of samples is known to the node alone."""


def rate_picture(spec: TrainSpec) -> None:
    """A line, and for which number of updates it is drawn."""
    known = _updates_per_epoch(spec)
    per_epoch = known or ASSUMED
    st.vega_lite_chart(
        rate_points(spec, per_epoch),
        rate_chart(),
        key="launch-rate",
        alt="The learning rate over the weight updates of the run",
    )
    said = "" if known else ": how many there are is known with the data"
    st.caption(f"The learning rate over the updates, for {per_epoch:,} per epoch{said}.")


def _updates_per_epoch(spec: TrainSpec) -> int:
    """Of synthetic data, whose number of samples is asked for; 0 = not known."""
    plan, data = spec.plan, spec.data
    if data.name != "synthetic":
        return 0
    batch = plan.batch if schedule(plan.schedule).batched else 1
    return data.samples // (plan.microbatch * batch)
