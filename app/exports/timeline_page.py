"""A run's timeline as one HTML file that needs no server and no network."""

from html import escape

from app.charts.frame import CONFIG
from app.charts.timeline import timeline
from app.exports.last_segment import last_segment
from backend.bootstrap import Backend
from backend.runs.run import Run

STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;color:#1B2430;background:#fff;margin:2rem}"
    "h1{font-size:1.4rem;margin:0}p{color:#5b6675;margin:.2rem 0 1rem}"
)


def timeline_page(backend: Backend, run: Run) -> bytes:
    """The last segment, measured above predicted, as much as a browser draws well. Raises
    `NotFound` where there is no timeline yet."""
    found = last_segment(backend, run)
    drawing = timeline(found.measured, found.predicted, found.rank_names)
    chart: str = drawing.to_html(full_html=False, include_plotlyjs=True, config=CONFIG)
    title = escape(found.title)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<style>{STYLE}</style><h1>{title}</h1><p>{escape(found.line)}</p>{chart}</html>"
    ).encode()
