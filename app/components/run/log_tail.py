"""The newest log lines of a run, read on from where this session stopped."""

from collections import deque
from collections.abc import Iterator

import streamlit as st

from app import services
from backend.bootstrap import Backend
from backend.runs.history.records import LogLine

KEPT = 1_000
PAGE = 5_000


def log_tail(run_id: int) -> deque[LogLine]:
    """The last `KEPT` lines; each call fetches only what is new since the one before."""
    kept: deque[LogLine] = st.session_state.setdefault(f"log-tail-{run_id}", deque(maxlen=KEPT))
    kept.extend(all_lines(services.backend(), run_id, kept[-1].seq if kept else 0))
    return kept


def all_lines(backend: Backend, run_id: int, after: int = 0) -> Iterator[LogLine]:
    """Every line behind sequence number `after`."""
    while True:
        lines = backend.runs.logs.list(run_id, after, PAGE)
        yield from lines
        if len(lines) < PAGE:
            return
        after = lines[-1].seq
