"""The sweeps, each with how far it is."""

from collections.abc import Sequence

from app.components.shell.grid import Column, grid, small, text, when
from app.formats import NOTHING, number, plain
from app.naming import sweep_words
from app.session.links import page_link
from app.session.state import Page
from backend.runs.sweeps.report import SweepReport


def sweep_list(found: Sequence[SweepReport]) -> None:
    """A row each, the newest first."""
    grid(
        "sweeps",
        (
            Column("Sweep", 2.4, _link),
            small("Varies", 2.2, _varies),
            text("Runs", 2.2, sweep_words),
            text("Best", 1.6, _best),
            small("Owner", 1.0, lambda each: each.sweep.owner),
            when("Created", 1.1, lambda each: each.sweep.created_at),
        ),
        found,
    )


def _link(each: SweepReport) -> None:
    page_link(Page.SWEEPS, f"**{each.sweep.id}** · {plain(each.sweep.name)}", id=each.sweep.id)


def _varies(each: SweepReport) -> str:
    return ", ".join(axis.name for axis in each.sweep.spec.axes)


def _best(each: SweepReport) -> str:
    best = next((one for one in each.results if one.number == each.best), None)
    if best is None:
        return NOTHING
    return f"{plain(each.sweep.spec.early.metric)} {number(best.metric)}"
