"""A run's timeline as one HTML file that needs no server and no network."""

from app.charts.canvas import canvas_bytes, opening, row_names
from app.charts.canvas_page import canvas_page
from app.exports.last_segment import last_segment
from app.formats import count
from backend.bootstrap import Backend
from backend.runs.run import Run

ALT = "When each rank computed, sent and waited, above what was predicted"


def timeline_page(backend: Backend, run: Run) -> bytes:
    """The whole last segment, measured above predicted, drawn by the pages' own canvas. Raises
    `NotFound` where there is no timeline yet."""
    found = last_segment(backend, run)
    data = canvas_bytes(
        found.measured,
        found.predicted,
        names=row_names(found.rank_names, found.measured),
        alt=ALT,
        first=opening(found.measured),
    )
    number = count(found.num_microbatches, "microbatch", "microbatches")
    return canvas_page(data, found.title, f"{found.line} · {number} · measured above predicted")
