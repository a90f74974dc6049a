"""Which runs to list: every condition is in the URL."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any, cast

import streamlit as st

from app import services
from app.components.runs.run_columns import COLUMNS, USUAL
from app.components.runs.view_menu import view_menu
from app.session import state
from app.session.state import Param, bound
from backend.runs.history.listing import RunFilter, RunOrder
from backend.runs.states import RunState
from backend.whole import is_whole

KINDS = ("train", "profile", "imported")
HIDDEN = (
    Param.DEFINITION,
    Param.PLAN,
    Param.OWNER,
    Param.TAG,
    Param.STARRED,
    Param.SINCE,
    Param.UNTIL,
    Param.ACCURACY_FROM,
    Param.ACCURACY_TO,
    Param.METRIC,
)


def run_filter(order: RunOrder) -> tuple[RunFilter, list[str]]:
    """The conditions, and the columns to show; with `order` they can be kept as a view."""
    with st.container(horizontal=True, vertical_alignment="bottom", key="row-run-filter"):
        text = st.text_input(
            "Search",
            **bound(Param.TEXT),
            placeholder="Name, note, tag, owner",
            icon=":material/search:",
            width=260,
        )
        kind = st.segmented_control("Kind", KINDS, **bound(Param.KIND))
        states = st.pills(
            "State",
            [found.value for found in RunState],
            selection_mode="multi",
            **bound(Param.STATE),
        )
        with st.container(horizontal=True, width="content", gap="small", key="run-filter-more"):
            with st.popover(_filter_label(), icon=":material/tune:"):
                more = _more()
            with st.popover("Columns", icon=":material/view_column:"):
                columns = _columns()
            wanted = RunFilter(
                states=tuple(RunState(name) for name in cast(Any, states)),
                kind=kind,
                text=(text or "").strip(),
                **more,
            )
            view_menu(wanted, order, columns)
    return wanted, columns


def _filter_label() -> str:
    active = sum(bool(state.text(param)) for param in HIDDEN)
    return f"Filters ({active})" if active else "Filters"


def _more() -> dict[str, Any]:
    starred = st.toggle("Starred only", **bound(Param.STARRED))
    left, right = st.columns(2)
    with left:
        owner = _one_of("Owner", Param.OWNER, list(services.backend().labels.owners()))
        definition = _numbered("Model", Param.DEFINITION, _definitions())
        since = st.date_input("Created from", None, **bound(Param.SINCE))
        least = _percent("Accuracy from, %", Param.ACCURACY_FROM)
        metric = _one_of("Metric", Param.METRIC, list(services.backend().runs.metrics.reached()))
    with right:
        tag = _one_of("Tag", Param.TAG, list(services.backend().labels.tags()))
        plan = _numbered("Plan", Param.PLAN, _plans())
        until = st.date_input("to", None, **bound(Param.UNTIL))
        most = _percent("to, %", Param.ACCURACY_TO)
        bounds = _bounds() if metric else (None, None)
    return {
        "starred": starred,
        "owner": owner,
        "tag": tag,
        "definition_id": definition,
        "plan_id": plan,
        "since": _midnight(since),
        "until": _midnight(until, days=1),
        "min_accuracy": least,
        "max_accuracy": most,
        "metric": metric,
        "min_metric": bounds[0],
        "max_metric": bounds[1],
    }


def _one_of(label: str, param: Param, options: list[str]) -> str | None:
    """A choice among what there is; one that only the URL knows of finds nothing."""
    named = state.text(param)
    if named and named not in options:
        options = [named, *options]
    return st.selectbox(label, options, index=None, placeholder="Any", **bound(param))


def _numbered(label: str, param: Param, names: dict[str, str]) -> int | None:
    """The same by id: a bound widget would write the name into the URL."""
    key, named = f"choose-{param.value}", state.text(param)
    options = [*names, *([named] if is_whole(named) and named not in names else [])]
    st.session_state[key] = named if named in options else None
    chosen = st.selectbox(
        label,
        options,
        index=None,
        key=key,
        placeholder="Any",
        format_func=lambda number: names.get(number, number),
        on_change=lambda: state.put(param, st.session_state[key]),
    )
    return int(chosen) if chosen else None


def _definitions() -> dict[str, str]:
    return {str(d.id): f"{d.id} · {d.label}" for d in services.backend().definitions.list()}


def _plans() -> dict[str, str]:
    return {str(plan.id): f"{plan.id} · {plan.name}" for plan in services.backend().plans.list()}


def _percent(label: str, param: Param) -> float | None:
    value = st.number_input(label, 0.0, 100.0, None, step=1.0, placeholder="Any", **bound(param))
    return None if value is None else value / 100


def _bounds() -> tuple[float | None, float | None]:
    """Of the metric that is named, from and to."""
    left, right = st.columns(2)
    with left:
        least = st.number_input("from", value=None, placeholder="Any", **bound(Param.METRIC_FROM))
    with right:
        most = st.number_input("to ", value=None, placeholder="Any", **bound(Param.METRIC_TO))
    return least, most


def _midnight(day: date | None, days: int = 0) -> datetime | None:
    """Where the visitor is."""
    if day is None:
        return None
    moment = datetime.combine(day, time(), state.zone()) + timedelta(days=days)
    return moment.astimezone(UTC)


def _columns() -> list[str]:
    chosen = st.pills(
        "Columns",
        list(COLUMNS),
        selection_mode="multi",
        default=USUAL,
        **bound(Param.COLUMNS),
    )
    return [name for name in COLUMNS if name in cast(Any, chosen)]
