"""The plans that were kept, to open one again."""

from collections.abc import Sequence

import streamlit as st

from app import services
from app.components.shell.grid import Column, grid, small, text, when
from app.components.shell.layout import card
from app.formats import count, plain, rate
from app.naming import plan_name
from app.session.links import page_link
from app.session.state import Page, Param, bound
from backend.runs.plans import StoredPlan

SHOWN = 8


def saved_plans() -> None:
    """The newest of them, of any profile; nothing where there are none."""
    found = services.backend().plans.list()
    if not found:
        return
    with card("Saved plans", f"{count(len(found), 'plan')}, newest first"):
        is_long = len(found) > SHOWN and not st.toggle("Show all", **bound(Param.ALL))
        grid("plans", COLUMNS, found[:SHOWN] if is_long else found)


def _name(stored: StoredPlan) -> None:
    page_link(Page.PLAN, f"**{stored.id}** · {plain(stored.name)}", plan=stored.id)


COLUMNS: Sequence[Column[StoredPlan]] = (
    Column("Plan", 2.4, _name),
    small("Partition", 2.0, lambda kept: plan_name(kept.plan)),
    small("Profile", 0.8, lambda kept: str(kept.profile_id)),
    text("Throughput", 1.1, lambda kept: rate(kept.prediction.samples_per_second)),
    small("Devices", 1.4, lambda kept: f"{kept.cluster.num_devices} × {kept.cluster.device.name}"),
    when("Saved", 1.1, lambda kept: kept.created_at),
)
