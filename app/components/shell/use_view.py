"""What devices use, over time, a picture for each measure."""

from collections.abc import Mapping, Sequence

import streamlit as st

from app.charts.use import measures_of, use_chart, use_rows
from backend.runs.use import UsePoint


def use_view(points: Sequence[UsePoint], names: Mapping[int, str], key: str) -> None:
    """`names` by the places of the devices; else the name that a device has itself."""
    for measure in measures_of(points):
        cells = use_rows(points, measure, names)
        st.markdown(f":small[**{measure.title}**]")
        drawing = use_chart(max(len(point.uses) for point in points))
        words = f"{measure.title} of each device over time"
        st.vega_lite_chart(cells, drawing, key=f"use-{key}-{measure.title}", alt=words)
