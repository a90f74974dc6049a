"""A run of others, taken over from MLflow."""

import streamlit as st

from app import services
from app.components.shell.allowed import closed, why_not
from app.components.shell.boundary import guarded
from app.formats import plain
from app.session import state
from app.session.state import Page
from backend.definitions.parameters import assignments


def import_form() -> None:
    """A button of the Runs page, where settings name an MLflow."""
    backend = services.backend()
    tracker = backend.trackers.known.get("mlflow")
    if tracker is None:
        return
    models = {each.id: each.label for each in backend.definitions.list()}
    barred = why_not() or (None if models else "Add a model first: the run is kept as one of it.")
    with st.popover("Import", icon=":material/download_for_offline:", **closed(barred)):
        st.markdown(f"A run's metrics, parameters and tags from {plain(tracker.title)}")
        run = st.text_input("MLflow's run", placeholder="Its id, or the address of its page")
        model = st.selectbox("Model", list(models), format_func=models.__getitem__)
        names = st.text_input(
            "Names of metrics here",
            placeholder="f1_val=f1, val_top1=accuracy",
            help="val_loss and the like become the held-out loss by themselves.",
        )
        if st.button("Import the run", type="primary", disabled=not run.strip()):
            _bring(run, model, names)


@guarded
def _bring(run: str, model: int, names: str) -> None:
    pairs = assignments([each for each in names.split(",") if each.strip()], "Names of metrics")
    state.go(Page.RUN, id=services.backend().imports.bring(run, model, pairs).id)
