"""The last few runs of the team, as rows that open them."""

from collections.abc import Sequence

from app.components.runs.run_columns import COLUMNS, NAME
from app.components.shell.grid import grid
from app.components.shell.layout import card
from backend.runs.run import Run

SHOWN = 5
CHOSEN = ("State", "Plan", "Accuracy", "Owner", "Asked for")


def newest_runs(runs: Sequence[Run]) -> None:
    """Nothing where there is none."""
    if not runs:
        return
    with card("Newest runs"):
        grid("newest", (NAME, *(COLUMNS[name] for name in CHOSEN)), runs)
