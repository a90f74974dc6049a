"""A run that was imported: where it is of, what it was asked for, its curves."""

import streamlit as st

from app import services
from app.charts.curve import X, Y, curve
from app.components.run.parameter_view import parameter_table
from app.components.shell.layout import card
from app.formats import plain
from backend.runs.events import ACCURACY
from backend.runs.request.spec import ImportedSpec
from backend.runs.run import Run

POINTS = 500  # of one curve


def imported_view(run: Run, spec: ImportedSpec) -> None:
    """All that is kept of it."""
    with card(f"Imported from {plain(spec.tracker)}", plain(f"run {spec.remote}")):
        if spec.url:
            st.link_button("Open it there", spec.url, icon=":material/open_in_new:")
        parameter_table(spec.parameters)
    with st.container(key="panels-run"):
        for name in services.backend().runs.metrics.names(run.id):
            with card(plain(name[:1].upper() + name[1:])):
                points = services.backend().runs.metrics.curve(run.id, name, POINTS)
                drawn = {X: [point.step for point in points], Y: [point.value for point in points]}
                how = curve(len(points), name=name, share=name == ACCURACY)
                st.vega_lite_chart(drawn, how, key=f"curve-{name}", alt=f"{name} over the updates")
