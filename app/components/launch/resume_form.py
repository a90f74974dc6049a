"""Going on from a run's newest checkpoint, by the same plan or by another one."""

from collections.abc import Sequence

import streamlit as st

from app import services
from app.components.shell.allowed import closed
from app.components.shell.boundary import guarded
from app.formats import ago, size
from app.naming import plan_name
from app.session import state
from app.session.state import Page
from backend.runs.attempts.checkpoints import Checkpoint
from backend.runs.plans import StoredPlan
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run
from backend.runs.states import RunState

MOST_EPOCHS = 1_000_000


def resume_form(run: Run, barred: str | None) -> None:
    """A button where the ended run left a checkpoint: to resume what was interrupted, or to train
    on what has come to its end. `barred` says why it cannot be pressed."""
    checkpoints = services.backend().runs.checkpoints.list(run.id)
    if not checkpoints or not isinstance(run.spec, TrainSpec):
        return
    newest, is_over = checkpoints[0], run.state is RunState.SUCCEEDED
    word = "Train on" if is_over else "Resume"
    with st.popover(
        word,
        icon=":material/resume:",
        type="secondary" if is_over else "primary",
        key="resume-menu",
        **closed(barred),
    ):
        said = f"({kept(newest)}, {ago(newest.created_at)})"
        st.markdown(f"{word}, as a new run, from the checkpoint {place(newest)} {said}.")
        epochs = _epochs(run.spec.epochs, newest.mark.epoch, is_over)
        rate = st.number_input(
            "Learning rate",
            1e-6,
            10.0,
            run.spec.optimizer.learning_rate,
            step=0.001,
            format="%.5g",
            help="The highest rate. A rate that falls continues as if these epochs and this rate "
            "had been set at the first launch",
            key="resume-rate",
        )
        plan = _plan(_others(run.spec))
        best = _best(checkpoints)
        label = "Train on" if is_over else "Resume the run"
        if st.button(label, type="primary", key="resume-confirmed"):
            changed = None if rate == run.spec.optimizer.learning_rate else rate
            _resumed(run.id, plan, epochs, best, changed)


def _epochs(asked: int, done: int, is_over: bool) -> int:
    """Epochs in all: as many as were `asked` for, or more than those that are `done`."""
    if is_over:
        return done + int(
            st.number_input("Further epochs", 1, MOST_EPOCHS, max(done, 1), key="resume-epochs")
        )
    least = done + 1
    return int(
        st.number_input("Total epochs", least, MOST_EPOCHS, max(asked, least), key="resume-epochs")
    )


def _best(checkpoints: Sequence[Checkpoint]) -> bool:
    """Whether to begin with the best one instead; asked where it is another one."""
    for checkpoint in checkpoints[1:]:
        if checkpoint.mark.best:
            return st.toggle(
                f"Begin with the checkpoint {place(checkpoint)} instead", key="resume-best"
            )
    return False


def place(checkpoint: Checkpoint) -> str:
    """Where in the training it was taken: "after update 1,234 (in epoch 5)"."""
    mark = checkpoint.mark
    when = f"in epoch {mark.epoch + 1}" if mark.samples else f"end of epoch {mark.epoch}"
    return f"after update {mark.step:,} ({when})" + ", the best evaluation" * mark.best


def kept(checkpoint: Checkpoint) -> str:
    """Whose it is and how large: "attempt 2, 12.3 MiB"."""
    return f"attempt {checkpoint.attempt}, {size(checkpoint.size)}"


def _others(spec: TrainSpec) -> Sequence[StoredPlan]:
    """The kept plans of the same profile that differ from the run's."""
    if spec.plan_id is None:
        return ()
    plans = services.backend().plans
    alike = plans.list(plans.get(spec.plan_id).profile_id)
    return [stored for stored in alike if stored.plan != spec.plan]


def _plan(others: Sequence[StoredPlan]) -> int | None:
    """The id of the one that is chosen; None for the plan that the run had."""
    if not others:
        return None
    names = {stored.id: f"{stored.id} · {plan_name(stored.plan)}" for stored in others}
    return st.selectbox(
        "Plan",
        [None, *names],
        format_func=lambda key: "As before" if key is None else names[key],
        help="Another plan partitions the weights anew, and the metrics start again",
        key="resume-plan",
    )


@guarded
def _resumed(run_id: int, plan: int | None, epochs: int, best: bool, rate: float | None) -> None:
    resumed = services.backend().runs.resume(run_id, plan, epochs, best=best, learning_rate=rate)
    state.notify(f"Run {resumed.id} resumes run {run_id}")
    state.go(Page.RUN, id=resumed.id)
