"""Which runs a list is to hold."""

from typing import Annotated

import typer

from backend.runs.history.listing import RunFilter
from backend.runs.states import RunState


def run_filter(
    state: Annotated[list[RunState] | None, typer.Option(help="Only runs in this state.")] = None,
    kind: Annotated[str | None, typer.Option(help="profile, train or imported.")] = None,
    text: Annotated[str, typer.Option(help="Only runs whose name contains this.")] = "",
    metric: Annotated[str | None, typer.Option(help="Only runs that reached this metric.")] = None,
    least: Annotated[float | None, typer.Option(help="And at least this value of it.")] = None,
    most: Annotated[float | None, typer.Option(help="And at most this value of it.")] = None,
) -> RunFilter:
    """The filter that these options ask for."""
    return RunFilter(
        states=tuple(state or ()),
        kind=kind,
        text=text,
        metric=metric,
        min_metric=least,
        max_metric=most,
    )
