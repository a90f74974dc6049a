"""Ask for a training run by a plan."""

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from app import services
from app.components.launch.data_form import data_form
from app.components.launch.place_form import place_form
from app.components.launch.update_form import update_form
from app.components.launch.weights_field import weights_field
from app.session import state
from app.session.state import Page
from backend.planning.optimizers import OPTIMIZERS, OptimizerName
from backend.planning.plan import Plan
from backend.runs.request.spec import DataSpec, OptimizerSpec, TrainSpec

TITLE_LOSS = "Stop at loss"
HELP_LOSS = "On held-out data, or below it; 0 = never. A perplexity p is a loss of ln p"


def launch_form(
    definition_id: int, plan: Plan, keep: Callable[[], int], optimizer: OptimizerName, name: str
) -> None:
    """Keeps the plan (`keep` gives its id), submits the run and opens its page.

    Raises `InvalidInput` on values out of range.
    """
    data = data_form(DataSpec(), bound=False)
    more = update_form(OptimizerSpec(), "float32", bound=False)
    where = place_form(plan)
    with st.form("launch", border=False):
        title = st.text_input("Name", name, max_chars=120)
        left, right = st.columns(2)
        epochs = left.number_input("Epochs, at most", min_value=1, value=10)
        target = right.number_input(
            "Stop at accuracy, %",
            0.0,
            100.0,
            0.0,
            step=1.0,
            format="%.1f",
            help="On held-out data; 0 = never stop early",
        )
        target_loss = right.number_input(TITLE_LOSS, 0.0, format="%.4f", help=HELP_LOSS)
        names = tuple(OPTIMIZERS)
        chosen = left.selectbox(
            "Optimizer",
            names,
            index=names.index(optimizer),
            format_func=lambda name: OPTIMIZERS[name].title,
        )
        rate = right.number_input("Learning rate", 1e-6, 10.0, 0.01, format="%.5f")
        seed = left.number_input("Seed", min_value=0, value=0)
        with right:
            weights = weights_field()
        if not st.form_submit_button("Start run", type="primary", icon=":material/play_arrow:"):
            return
    spec = TrainSpec(
        definition_id=definition_id,
        plan=plan,
        plan_id=keep(),
        data=data,
        optimizer=replace(more.optimizer, name=chosen, learning_rate=rate),
        epochs=int(epochs),
        target_accuracy=target / 100 if target else None,
        target_loss=target_loss or None,
        seed=int(seed),
        nodes=where.nodes,
        emulate=where.emulate,
        weights_id=weights,
        precision=more.precision,
    )
    run = services.backend().runs.submit(spec, title)
    state.go(Page.RUN, id=run.id)
