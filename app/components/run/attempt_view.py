"""What came of each attempt at a run, and the checkpoints that are kept of it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from app import services
from app.components.launch.resume_form import kept, place
from app.components.shell.layout import card
from app.formats import NOTHING, ago, moment, size
from app.session import state
from backend.runs.attempts.attempts import StoredAttempt
from backend.runs.attempts.checkpoints import Checkpoint
from backend.runs.run import Run


def attempt_view(run: Run) -> None:
    """The attempts unless one began at the beginning; the checkpoints where there are any."""
    runs = services.backend().runs
    attempts = runs.attempts(run.id)
    step = attempts[-1].step if attempts else None
    if len(attempts) > 1 or step is not None:
        said = "from the beginning" if step is None else f"goes on from update {step:,}"
        with card("Attempts", f"the newest {said}"):
            table = attempt_rows(attempts)
            st.dataframe(table, hide_index=True, key="attempts", alt="Every attempt and its end")
    checkpoints = runs.checkpoints(run.id)
    if checkpoints:
        with card("Checkpoints", "newest first; a training goes on from one"):
            for checkpoint in checkpoints:
                _checkpoint(checkpoint)


def attempt_rows(attempts: Sequence[StoredAttempt]) -> dict[str, list[Any]]:
    """The table by columns."""
    zone = state.zone()
    return {
        "attempt": [one.number for one in attempts],
        "node": [one.node for one in attempts],
        "started": [moment(one.started_at, zone) for one in attempts],
        "from update": [NOTHING if one.step is None else f"{one.step:,}" for one in attempts],
        "outcome": [one.outcome or "goes on" for one in attempts],
        "reason": [one.error.message if one.error else NOTHING for one in attempts],
    }


def _checkpoint(checkpoint: Checkpoint) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(
            f"{place(checkpoint).capitalize()} &ensp;:gray[:small[{kept(checkpoint)} · "
            f"{ago(checkpoint.created_at)}]]",
            width="stretch",
        )
        with st.popover("Download", icon=":material/download:"):
            for file in checkpoint.files:
                _file(checkpoint, checkpoint.folder / file.name, file.size)


def _file(checkpoint: Checkpoint, path: Path, num_bytes: int) -> None:
    is_here = path.is_file()
    st.download_button(
        f"{path.name} ({size(num_bytes)})",
        data=_reader(path),
        file_name=f"run-{checkpoint.run_id}-update-{checkpoint.mark.step}-{path.name}",
        key=f"checkpoint-{checkpoint.id}-{path.name}",
        type="tertiary",
        disabled=not is_here,
        help=None if is_here else "It lies on another machine",
        on_click="ignore",
    )


def _reader(path: Path) -> Callable[[], bytes]:
    return lambda: path.read_bytes()
