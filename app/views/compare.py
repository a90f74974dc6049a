"""Compare: several training runs side by side."""

import streamlit as st

from app import services
from app.components.runs.comparison_view import comparison_view, label
from app.components.runs.run_selection import MOST
from app.components.shell.boundary import guarded
from app.components.shell.layout import empty_state, page_header
from app.components.shell.pick import pick_several
from app.server.sessions import refresh_interval
from app.session import state
from app.session.state import Page, Param
from backend.runs.history.listing import RunFilter
from backend.whole import is_whole

OFFERED, FEW = 200, 3
REFRESH = 3.0


def page() -> None:
    """The runs that ?runs=1,2,3 names, in that order."""
    page_header("Compare", "What made the difference between runs.")
    service = services.backend().runs
    newest = service.list(RunFilter(kind="train"), OFFERED).runs
    if not newest:
        empty_state(
            "No training run yet",
            "Launch two trainings, of two plans or with two learning rates, and compare them.",
            Page.PLAN,
        )
        return
    named = numbers(state.text(Param.RUNS))
    chosen = _choose(named, {run.id: label(run) for run in newest})
    runs = [run for run in service.several(chosen) if run.kind == "train"]
    missing = sorted(set(chosen) - {run.id for run in runs})
    if missing:
        st.warning(f"No training run {', '.join(map(str, missing))}.", icon=":material/search_off:")
    if not runs:
        _offer([run.id for run in newest[:FEW]])
        return
    final = all(run.state.is_final for run in runs)
    st.fragment(_live, run_every=None if final else refresh_interval(REFRESH))(
        [run.id for run in runs]
    )


def _offer(newest: list[int]) -> None:
    """What to do while nothing is chosen."""
    empty_state(
        "Nothing chosen yet",
        "Choose runs above, or tick them in the table of runs and press Compare.",
        Page.RUNS,
    )
    if len(newest) > 1 and st.button(f"Compare the newest {len(newest)}"):
        state.go(Page.COMPARE, runs=",".join(map(str, newest)))


def numbers(text: str) -> list[int]:
    """The ids of a list such as "3,1,2", each once; whatever is no id is left out."""
    parts = [part.strip() for part in text.split(",")]
    found = [int(part) for part in parts if is_whole(part)]
    return list(dict.fromkeys(found))[:MOST]


def _choose(named: list[int], names: dict[int, str]) -> list[int]:
    return pick_several(
        "Runs",
        list(dict.fromkeys([*named, *names])),
        named,
        Param.RUNS,
        lambda number: names.get(number, f"run {number}"),
        max_selections=MOST,
        placeholder="Choose two or more",
    )


@guarded
def _live(ids: list[int]) -> None:
    comparison_view(services.backend().runs.several(ids))


page()
