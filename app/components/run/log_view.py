"""A run's log: search in it, follow its end, take it away."""

from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Literal

import streamlit as st

from app import services
from app.components.shell.download import download
from app.exports.catalog import EXPORTS, source
from app.session import state
from app.session.state import Param, bound
from backend.runs.history.records import LogLine
from backend.runs.run import Run

KEPT = 1_000  # lines
SHOWN = 500
HEIGHT = 320  # pixels
LINES_SEEN = 13  # in that height


def log_view(run: Run) -> None:
    """The newest lines; a search and the download read all of them."""
    runs, export = services.backend().runs, EXPORTS["log"]
    with st.container(horizontal=True, vertical_alignment="center"):
        wanted = st.text_input(
            "Search in the log",
            **bound(Param.SEARCH),
            placeholder="Search",
            label_visibility="collapsed",
            icon=":material/search:",
        )
        follow = st.toggle("Follow", value=True, key=f"log-follow-{run.id}")
        data = services.later(lambda its: export.write(its, run))
        download("Download", data, export.file_name(run), export.media)
    lines = found(runs.logs.every(run.id), wanted) if wanted else list(_tail(run.id))
    shown = lines[-SHOWN:]
    height: int | Literal["content"] = HEIGHT if len(shown) > LINES_SEEN else "content"
    with st.container(height=height, autoscroll=follow, border=True, key=f"log-box-{run.id}"):
        if shown:
            st.code("\n".join(map(_line_text, shown)), language=None, wrap_lines=True)
        else:
            st.caption(f"No line contains “{wanted}”." if wanted else _none(run))
    if len(lines) > SHOWN:
        st.caption(f"The last {SHOWN} of {len(lines):,} lines; the download has them all.")


def _tail(run_id: int) -> deque[LogLine]:
    """The last `KEPT` lines; each call fetches only what is new since the one before."""
    kept: deque[LogLine] = st.session_state.setdefault(f"log-tail-{run_id}", deque(maxlen=KEPT))
    kept.extend(services.backend().runs.logs.every(run_id, kept[-1].seq if kept else 0))
    return kept


def _none(run: Run) -> str:
    if run.cleared_at is not None:
        return "The project's rule of retention has deleted the log."
    return "No line was written." if run.state.is_final else "No line yet."


def found(lines: Iterable[LogLine], wanted: str) -> list[LogLine]:
    """The lines that contain `wanted`, whatever the case."""
    return [line for line in lines if wanted.casefold() in line.text.casefold()]


def _line_text(line: LogLine) -> str:
    """A line as it is shown: time, rank, text."""
    moment = datetime.fromtimestamp(line.time, UTC).astimezone(state.zone())
    return f"{moment:%H:%M:%S}  {source(line)}  {line.text}"
