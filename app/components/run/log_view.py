"""A run's log: all of it or one rank's, search in it, follow its end, take it away; and where the
ranks are now."""

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Literal

import streamlit as st

from app import services
from app.components.shell.allowed import why_not
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
FEW_RANKS = 8
"""As many have room in a row; more are chosen from a list."""
ALL, AGENT = "All", "Agent"
STACKS = (
    "Every rank writes the stack of each of its threads into its output, as Python's faulthandler "
    "does, also while it waits for a message. The run goes on."
)


@dataclass
class LogTail:
    """The last `KEPT` lines of a run and of each source, None for the agent; `seq` of the newest
    line that was read."""

    seq: int = 0
    whole: deque[LogLine] = field(default_factory=partial(deque, maxlen=KEPT))
    of: defaultdict[int | None, deque[LogLine]] = field(
        default_factory=partial(defaultdict, partial(deque, maxlen=KEPT))
    )

    def add(self, lines: Iterable[LogLine]) -> None:
        for line in lines:
            self.whole.append(line)
            self.of[line.rank].append(line)
            self.seq = line.seq

    @property
    def sources(self) -> dict[str, int | None]:
        """Who has written, by the words for it."""
        ranks = sorted(rank for rank in self.of if rank is not None)
        agent = {AGENT: None} if None in self.of else {}
        return {**agent, **{f"Rank {rank}": rank for rank in ranks}}


def log_view(run: Run) -> None:
    """The newest lines; a search and the download read all of them."""
    runs, export = services.backend().runs, EXPORTS["log"]
    tail = _read(run.id)
    chosen = _source(tail)
    with st.container(horizontal=True, vertical_alignment="center"):
        wanted = st.text_input(
            "Search in the log",
            **bound(Param.SEARCH),
            placeholder="Search",
            label_visibility="collapsed",
            icon=":material/search:",
        )
        follow = st.toggle("Follow", value=True, key=f"log-follow-{run.id}")
        if run.state.is_live:
            _stacks(run.id, why_not(run.project_id))
        data = services.later(lambda its: export.write(its, run))
        download("Download", data, export.file_name(run), export.media)
    own = tail.whole if chosen == ALL else tail.of[tail.sources[chosen]]
    lines = list(own)
    if wanted:
        every = runs.logs.every(run.id)
        its = every if chosen == ALL else (x for x in every if x.rank == tail.sources[chosen])
        lines = found(its, wanted)
    shown = lines[-SHOWN:]
    height: int | Literal["content"] = HEIGHT if len(shown) > LINES_SEEN else "content"
    with st.container(height=height, autoscroll=follow, border=True, key=f"log-box-{run.id}"):
        if shown:
            st.code("\n".join(map(_line_text, shown)), language=None, wrap_lines=True)
        else:
            st.caption(f"No line contains “{wanted}”." if wanted else _none(run))
    if len(lines) > SHOWN:
        st.caption(f"The last {SHOWN} of {len(lines):,} lines; the download has them all.")


def _read(run_id: int) -> LogTail:
    """Each call fetches only what is new since the one before."""
    kept: LogTail = st.session_state.setdefault(f"log-tail-{run_id}", LogTail())
    kept.add(services.backend().runs.logs.every(run_id, kept.seq))
    return kept


def _source(tail: LogTail) -> str:
    """Whose lines are shown: everybody's, the agent's, or a rank's."""
    offered = [ALL, *tail.sources]
    if len(offered) < 3:
        return ALL
    look = {"label_visibility": "collapsed", **bound(Param.OUTPUT)}
    if len(offered) > FEW_RANKS + 2:
        chosen = st.selectbox("Output of", offered, width=160, **look)
    else:
        chosen = st.segmented_control("Output of", offered, default=ALL, required=True, **look)
    return chosen if chosen in offered else ALL


def _stacks(run_id: int, barred: str | None) -> None:
    icon, is_barred = ":material/layers:", barred is not None
    if st.button("Show stacks", icon=icon, help=barred or STACKS, disabled=is_barred):
        services.backend().runs.show_stacks(run_id)
        state.done("The ranks were asked for their stacks: they come into the log")


def _none(run: Run) -> str:
    if run.cleared_at is not None:
        return "The project's retention rule has deleted the log."
    return "No line was written." if run.state.is_final else "No line yet."


def found(lines: Iterable[LogLine], wanted: str) -> list[LogLine]:
    """The lines that contain `wanted`, whatever the case."""
    return [line for line in lines if wanted.casefold() in line.text.casefold()]


def _line_text(line: LogLine) -> str:
    """A line as it is shown: time, rank, text."""
    moment = datetime.fromtimestamp(line.time, UTC).astimezone(state.zone())
    return f"{moment:%H:%M:%S}  {source(line)}  {line.text}"
