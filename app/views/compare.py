"""Compare: training runs, or two plans, side by side."""

from collections.abc import Sequence

import streamlit as st

from app import services
from app.components.comparison.plan_comparison import plan_comparison
from app.components.comparison.run_comparison import run_comparison
from app.components.comparison.run_summary import run_names
from app.components.runs.run_selection import MOST
from app.components.shell.boundary import guarded
from app.components.shell.layout import empty_state, page_header, tab_title
from app.components.shell.pick import pick_several
from app.formats import plain, shorten
from app.server.sessions import refresh_interval
from app.session import state
from app.session.state import Page, Param, bound
from backend.errors import NotFound
from backend.runs.history.listing import RunFilter
from backend.runs.plans import StoredPlan
from backend.whole import is_whole

OFFERED, FEW = 200, 3
RUNS, PLANS = "runs", "plans"
KINDS = ("train", "imported")
REFRESH = 3.0


def page() -> None:
    """The runs that ?runs=1,2,3 names, in that order; with ?of=plans the two of ?plans=1,2."""
    page_header("Compare", "What differs between runs, and between two plans.")
    chosen = st.segmented_control(
        "Compare",
        [RUNS, PLANS],
        default=RUNS,
        required=True,
        label_visibility="collapsed",
        **bound(Param.COMPARED),
    )
    if chosen == PLANS:
        _plans()
    else:
        _runs()


def _runs() -> None:
    service = services.backend().runs
    found = [run for kind in KINDS for run in service.list(RunFilter(kind=kind), OFFERED).runs]
    newest = sorted(found, key=lambda run: -run.id)
    if not newest:
        empty_state(
            "No training run yet",
            "Launch two trainings, of two plans or with two learning rates, and compare them.",
            Page.PLAN,
        )
        return
    named, others = numbers(state.text(Param.RUNS))
    named, more = named[:MOST], named[MOST:]
    offered = {run.id: run for run in [*service.several(named), *newest]}
    names = run_names(list(offered.values()))
    chosen = _choose("Runs", named, names, Param.RUNS, MOST, "Choose two or more")
    runs = [run for run in service.several(chosen) if run.is_training]
    _not_shown("training run", [*sorted(set(chosen) - {run.id for run in runs}), *others], more)
    if not runs:
        _offer([run.id for run in newest[:FEW]])
        return
    names = run_names(runs)
    tab_title("Compare", *(names[run.id] for run in runs[:FEW]))
    final = all(run.state.is_final for run in runs)
    st.fragment(_live, run_every=None if final else refresh_interval(REFRESH))(
        [run.id for run in runs]
    )


def _plans() -> None:
    service = services.backend().plans
    kept = {plan.id: plan for plan in service.list()}
    named, others = numbers(state.text(Param.PLANS))
    named, more = named[:2], named[2:]
    if not (kept or named or others):
        empty_state("No saved plan yet", "Save two plans, and compare them.", Page.PLAN)
        return
    for number in named:
        if found := _kept(number):
            kept.setdefault(number, found)
    names = {plan.id: f"{plan.name} · plan {plan.id}" for plan in kept.values()}
    chosen = _choose("Plans", named, names, Param.PLANS, 2, "Choose two")
    missing = [number for number in chosen if number not in kept]
    _not_shown("plan", [*missing, *others], more)
    if len(chosen) == 2 and not missing:
        first, second = (kept[number] for number in chosen)
        tab_title("Compare", first.name, second.name)
        _beside(first, second)
    elif not missing:
        empty_state(
            "Choose two plans", "Choose them above, or tick two in the list of saved plans."
        )


def _kept(number: int) -> StoredPlan | None:
    try:
        return services.backend().plans.get(number)
    except NotFound:
        return None


@guarded
def _beside(first: StoredPlan, second: StoredPlan) -> None:
    plan_comparison(first, second)


def _offer(newest: list[int]) -> None:
    """What to do while nothing is chosen."""
    empty_state(
        "Nothing chosen yet",
        "Choose runs above, or tick them in the table of runs and press Compare.",
        Page.RUNS,
    )
    if len(newest) > 1 and st.button(f"Compare the newest {len(newest)}"):
        state.go(Page.COMPARE, runs=",".join(map(str, newest)))


def numbers(text: str) -> tuple[list[int], list[str]]:
    """The ids of a list such as "3,1,2", each once; and what else stands there."""
    parts = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    ids = dict.fromkeys(int(part) for part in parts if is_whole(part))
    return list(ids), [part for part in parts if not is_whole(part)]


def _not_shown(noun: str, missing: Sequence[object], more: Sequence[int]) -> None:
    """What the link names and the page does not show: it is not there, or too much for it."""
    if missing:
        listed = ", ".join(shorten(str(name), 40) for name in missing[:MOST])
        st.warning(plain(f"No {noun} {listed}."), icon=":material/search_off:")
    if more:
        listed = ", ".join(map(str, more[:MOST]))
        st.warning(
            f"Too many to compare at once: {listed} left out.", icon=":material/filter_list:"
        )


def _choose(
    label: str, named: list[int], names: dict[int, str], param: Param, most: int, hint: str
) -> list[int]:
    return pick_several(
        label,
        list(dict.fromkeys([*named, *names])),
        named,
        param,
        lambda number: names.get(number, f"{label.removesuffix('s').lower()} {number}"),
        max_selections=most,
        placeholder=hint,
    )


@guarded
def _live(ids: list[int]) -> None:
    run_comparison(services.backend().runs.several(ids))


page()
