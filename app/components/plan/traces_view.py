"""A run elsewhere, from a trace of each rank, beside the prediction of a kept plan."""

from typing import Any

import streamlit as st

from app import services
from app.charts.bars import bars_of
from app.charts.canvas import canvas_bytes, opening, row_names
from app.components.shell.boundary import error_box
from app.components.timeline.timeline_view import timeline_canvas
from app.formats import change, percent, seconds
from app.naming import rank_names, traced_words
from app.session.state import Param
from backend.comparison.traced_runs import TracedRun, traced_run
from backend.errors import StageflowError
from backend.profiles.traces.trace_file import read_torch_trace
from backend.runs.plans import StoredPlan

ALT = "When each rank of a run elsewhere computed, above what was predicted"
HELP = (
    "One file of torch.profiler's export_chrome_trace for each rank of this plan, rank 0 first. "
    'Ranges name what is computed: "forward 3", "backward 3"; torch.distributed.pipelining sets '
    "them by itself."
)


def traces_view(kept: StoredPlan) -> bool:
    """The upload; what the traces say, and whether there are any."""
    with st.popover("Traces of a run elsewhere", icon=":material/upload:"):
        files = st.file_uploader(
            "Traces",
            ["json", "gz"],
            accept_multiple_files=True,
            help=HELP,
            key=f"traces-{kept.id}",
            max_upload_size=64,
        )
    if not files:
        return False
    try:
        traces = [read_torch_trace(file.name, file.getvalue()) for file in files]
        profile = services.backend().profiles.get(kept.profile_id).profile
        found, measured, predicted = traced_run(traces, profile, kept.cluster, kept.plan)
    except StageflowError as reason:
        error_box(reason)
        return False
    bars = bars_of(measured)
    names = row_names(rank_names(kept.plan), bars)
    param, first = Param.WINDOW.value, opening(bars)
    data = canvas_bytes(bars, bars_of(predicted), names=names, alt=ALT, param=param, first=first)
    timeline_canvas(f"traces-{kept.id}-canvas", data)
    st.caption(f"Thick bars: measured; thin bars: predicted. {traced_words(found)}.")
    if found.unmatched:
        st.caption(f"{found.unmatched:,} actions are only in one of the two.")
    st.dataframe(rows(found), hide_index=True, key=f"traces-{kept.id}-ranks", alt="By rank")
    return True


def rows(found: TracedRun) -> dict[str, list[Any]]:
    """The table by rank, by columns."""
    return {
        "rank": [rank.rank for rank in found.ranks],
        "computed": [seconds(rank.computed) for rank in found.ranks],
        "predicted": [seconds(rank.predicted) for rank in found.ranks],
        "difference": [change(rank.computed, rank.predicted) for rank in found.ranks],
        "waiting": [percent(rank.waiting) for rank in found.ranks],
        "waiting, predicted": [percent(rank.predicted_waiting) for rank in found.ranks],
        "": ["slow" if rank.is_slow else "" for rank in found.ranks],
    }
