"""The plans that were kept, to open one again."""

from collections.abc import Sequence

import streamlit as st

from app import services
from app.components.shell.grid import Column, grid
from app.components.shell.layout import card
from app.formats import ago, count, plain, rate
from app.naming import plan_name
from app.session.state import Page, Param
from backend.runs.plans import StoredPlan

SHOWN = 8


def saved_plans() -> None:
    """The newest of them, of any profile; nothing where there are none."""
    found = services.backend().plans.list()
    if not found:
        return
    with card("Saved plans", f"{count(len(found), 'plan')}, newest first"):
        many = len(found) > SHOWN and _all()
        grid("plans", COLUMNS, found if many else found[:SHOWN])


def _all() -> bool:
    return st.toggle("Show all", key=Param.ALL.value, bind="query-params")


def _name(stored: StoredPlan) -> None:
    st.page_link(
        Page.PLAN.value,
        label=f"**{stored.id}** · {plain(stored.name)}",
        query_params={"plan": str(stored.id)},
    )


def _small(text: str) -> None:
    st.markdown(f":small[{plain(text)}]")


COLUMNS: Sequence[Column[StoredPlan]] = (
    Column("Plan", 2.4, _name),
    Column("Partition", 2.0, lambda kept: _small(plan_name(kept.plan))),
    Column("Profile", 0.8, lambda kept: _small(str(kept.profile_id))),
    Column("Throughput", 1.1, lambda kept: st.markdown(rate(kept.prediction.samples_per_second))),
    Column(
        "Devices",
        1.4,
        lambda kept: _small(f"{kept.cluster.num_devices} × {kept.cluster.device.name}"),
    ),
    Column("Saved", 1.1, lambda kept: st.markdown(f":gray[{ago(kept.created_at)}]")),
)
