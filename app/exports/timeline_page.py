"""A run's timeline as one HTML file that needs no server and no network."""

from html import escape

from app import formats
from app.charts.frame import CONFIG
from app.charts.timeline import MAX_BARS, Window, num_microbatches, timeline, within
from app.naming import plan_name, rank_names
from backend.bootstrap import Backend
from backend.errors import NotFound
from backend.runs.run import Run
from backend.runs.spec import TrainSpec

STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;color:#1B2430;background:#fff;margin:2rem}"
    "h1{font-size:1.4rem;margin:0}p{color:#5b6675;margin:.2rem 0 1rem}"
)


def timeline_page(backend: Backend, run: Run) -> bytes:
    """The last segment, measured above predicted, as much as a browser draws well. Raises
    `NotFound` where there is no timeline yet."""
    segment = max(backend.runs.segments(run.id), default=None)
    measured = backend.runs.timeline(run.id, "measured", segment)
    if measured is None or not isinstance(run.spec, TrainSpec):
        raise NotFound(f"run {run.id} has no timeline", "It comes with a training's first epoch.")
    predicted = backend.runs.timeline(run.id, "predicted", segment)
    total = num_microbatches(measured)
    bars = len(measured.spans) + (len(predicted.spans) if predicted else 0)
    window = Window(0, max(1, min(total, total * MAX_BARS // max(bars, 1))))
    drawing = timeline(
        within(measured, window),
        within(predicted, window) if predicted else None,
        rank_names(run.spec.plan),
    )
    chart: str = drawing.to_html(full_html=False, include_plotlyjs=True, config=CONFIG)
    title = f"{run.name} · run {run.id}"
    line = (
        f"{plan_name(run.spec.plan)} · {run.state.value} · "
        f"{formats.percent(run.summary.accuracy)} · epoch {(segment or 0) + 1}, microbatches "
        f"0 to {window.stop - 1} of {total} · measured above predicted"
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style><h1>{escape(title)}</h1><p>{escape(line)}</p>{chart}</html>"
    ).encode()
