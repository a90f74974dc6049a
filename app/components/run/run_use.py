"""What the ranks of a run use, or used, over time."""

import streamlit as st

from app import services
from app.components.shell.boundary import guarded
from app.components.shell.layout import card
from app.components.shell.use_view import use_view
from app.server.sessions import refresh_interval
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run

REFRESH = 10.0
EMULATED = "Of the processes: emulated devices wait, and send a share of the bytes."


def run_use(run: Run) -> None:
    """Drawn anew every few seconds while the run is live."""
    every = None if run.state.is_final else refresh_interval(REFRESH)
    st.fragment(_drawn, run_every=every)(run.id)


@guarded
def _drawn(run_id: int) -> None:
    backend = services.backend()
    points = backend.use.of_run(run_id)
    if len(points) < 2:
        return
    num_ranks = max(len(point.uses) for point in points)
    names = {rank: f"rank {rank}" for rank in range(num_ranks)}
    with card("Use over time", "stronger colour: more use; after each rank its last use"):
        spec = backend.runs.get(run_id).spec
        if isinstance(spec, TrainSpec) and spec.emulate:
            st.caption(EMULATED)
        use_view(points, names, "run")
