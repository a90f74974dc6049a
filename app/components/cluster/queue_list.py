"""Who waits for a node, and why."""

from collections.abc import Sequence

from app.components.runs.run_words import plan_label, run_link
from app.components.shell.grid import Column, grid, small, text, when
from backend.runs.history.listing import QueuedRun


def queue_list(queue: Sequence[QueuedRun]) -> None:
    """In the order in which agents take them."""
    grid(
        "queue",
        (
            text("", 0.4, lambda q: f"**{q.place}**"),
            Column("Run", 2.4, lambda q: run_link(q.run)),
            small("What", 2.0, lambda q: plan_label(q.run)),
            small("Owner", 1.0, lambda q: q.run.owner),
            when("Waits since", 1.1, lambda q: q.run.created_at),
            small("Why", 4.0, lambda q: _why(q, queue[0])),
        ),
        queue,
    )


def _why(queued: QueuedRun, first: QueuedRun) -> str:
    """What holds up everybody is said once."""
    same = queued is not first and queued.reason == first.reason
    return "For the same reason." if same else queued.reason
