"""A run's log: search in it, follow its end, take it away."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Literal

import streamlit as st

from app.session import state
from app.session.state import Param
from backend.runs.history.records import LogLine
from backend.runs.run import Run

SHOWN = 500
HEIGHT = 320  # pixels
LINES_SEEN = 13  # in that height


def log_view(
    run: Run, tail: Sequence[LogLine], everything: Callable[[], Sequence[LogLine]]
) -> None:
    """The newest lines of `tail`; a search and the download read `everything`."""
    with st.container(horizontal=True, vertical_alignment="center"):
        wanted = st.text_input(
            "Search in the log",
            key=Param.SEARCH.value,
            bind="query-params",
            placeholder="Search",
            label_visibility="collapsed",
            icon=":material/search:",
        )
        follow = st.toggle("Follow", value=True, key=f"log-follow-{run.id}")
        st.download_button(
            "Download",
            data=lambda: written(everything()),
            file_name=f"run-{run.id}.log",
            mime="text/plain",
            icon=":material/download:",
            key=f"log-download-{run.id}",
            on_click="ignore",
        )
    lines = found(everything(), wanted) if wanted else list(tail)
    shown = lines[-SHOWN:]
    height: int | Literal["content"] = HEIGHT if len(shown) > LINES_SEEN else "content"
    with st.container(height=height, autoscroll=follow, border=True, key=f"log-box-{run.id}"):
        if shown:
            st.code("\n".join(map(line_text, shown)), language=None, wrap_lines=True)
        else:
            st.caption(f"No line holds “{wanted}”." if wanted else _none(run))
    if len(lines) > SHOWN:
        st.caption(f"The last {SHOWN} of {len(lines):,} lines; the download has them all.")


def _none(run: Run) -> str:
    if run.cleared_at is not None:
        return "The project's rule has taken the log away."
    return "No line was written." if run.state.is_final else "No line yet."


def found(lines: Sequence[LogLine], wanted: str) -> list[LogLine]:
    """The lines that hold `wanted`, whatever the case."""
    return [line for line in lines if wanted.casefold() in line.text.casefold()]


def line_text(line: LogLine) -> str:
    """A line as it is shown: time, rank, text."""
    moment = datetime.fromtimestamp(line.time, UTC).astimezone(state.zone())
    return f"{moment:%H:%M:%S}  {_who(line)}  {line.text}"


def written(lines: Sequence[LogLine]) -> str:
    """The log as a file: UTC with milliseconds."""
    return "".join(
        f"{datetime.fromtimestamp(line.time, UTC).isoformat(timespec='milliseconds')} "
        f"{_who(line)} {line.text}\n"
        for line in lines
    )


def _who(line: LogLine) -> str:
    return "agent" if line.rank is None else f"rank{line.rank}"
