"""What a run leaves behind: files, the outcome of each attempt, checkpoints."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from app import services
from app.components.launch.resume_form import kept, place
from app.components.shell.allowed import closed
from app.components.shell.layout import card
from app.formats import NOTHING, ago, moment, plain, size
from app.gate.run_files import artifact_link, checkpoint_link
from app.naming import plan_name
from app.queries.segments import prediction_of
from app.session import state
from backend.runs.attempts.checkpoints import Checkpoint
from backend.runs.history.rates import updates_per_second
from backend.runs.history.records import StoredArtifact, StoredAttempt
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run

POINTS = 2000
"""Of the losses, for the pace of each attempt."""
RATES = ("predicted, samples/s", "measured, samples/s")


def attempt_view(run: Run) -> None:
    """The attempts unless one began at the beginning; the checkpoints where there are any."""
    runs = services.backend().runs
    attempts = runs.attempts(run.id)
    step = attempts[-1].step if attempts else None
    if len(attempts) > 1 or step is not None:
        said = "from the beginning" if step is None else f"goes on from update {step:,}"
        with card("Attempts", f"the newest {said}"):
            table = attempt_rows(attempts) | _plans(run, attempts)
            st.dataframe(
                table,
                hide_index=True,
                key="attempts",
                alt="Every attempt and its end",
                column_config=dict.fromkeys(RATES, st.column_config.NumberColumn(format="%.4g")),
                placeholder=NOTHING,
            )
    checkpoints = runs.checkpoints.list(run.id)
    if checkpoints:
        with card("Checkpoints", "newest first; a training can be resumed from one"):
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


def _plans(run: Run, attempts: Sequence[StoredAttempt]) -> dict[str, list[Any]]:
    """The columns that a run has which lost nodes and went on by another plan: old and new plan,
    predicted and measured samples/s."""
    spec, predicted = run.spec, prediction_of(run)
    if not isinstance(spec, TrainSpec) or not any(one.plan for one in attempts):
        return {}
    losses = services.backend().runs.metrics.curve(run.id, "loss", POINTS)
    rates = [updates_per_second(one, losses) for one in attempts]
    minibatch = spec.plan.microbatch * spec.plan.batch
    full = predicted.samples_per_second if predicted else 0.0
    return {
        "plan": [plan_name(one.plan or spec.plan) for one in attempts],
        RATES[0]: [
            full * (1.0 if one.plan is None else one.factor or 0.0) or None for one in attempts
        ],
        RATES[1]: [None if rate is None else rate * minibatch for rate in rates],
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
                is_here = (checkpoint.folder / file.name).is_file()
                st.link_button(
                    f"{file.name} ({size(file.size)})",
                    checkpoint_link(checkpoint, file.name),
                    width="stretch",
                    **closed(None if is_here else "The file is on another machine."),
                )


def artifact_list(run_id: int, artifacts: Sequence[StoredArtifact]) -> None:
    """Name, size, digest and a download each."""
    for artifact in artifacts:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(
                f"{plain(artifact.name)} &ensp;:gray[:small[{size(artifact.size)} · "
                f"sha256 {artifact.sha256[:10]}]]",
                width="stretch",
            )
            link = artifact_link(run_id, artifact)
            st.link_button("Download", link, icon=":material/download:")
