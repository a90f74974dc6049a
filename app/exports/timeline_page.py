"""A run's timeline as one HTML file that needs no server and no network."""

from base64 import b64encode
from html import escape

from app.charts.canvas import SCRIPT, STYLE, canvas_bytes, opening, row_names
from app.exports.last_segment import last_segment
from app.formats import count
from backend.bootstrap import Backend
from backend.runs.run import Run

ALT = "When each rank computed, sent and waited, above what was predicted"
LOOK = """
:root { color-scheme: light dark; --st-font: system-ui, sans-serif;
  --st-text-color: #1B2430; --st-background-color: #FFF; --st-border-color: #E1E5EB;
  --st-primary-color: #0072B2; }
@media (prefers-color-scheme: dark) { :root { --st-text-color: #E3E7ED;
  --st-background-color: #12161C; --st-border-color: #2C343F; --st-primary-color: #1E7AB8; } }
body { font: 15px/1.5 var(--st-font); color: var(--st-text-color); margin: 2rem;
  background: var(--st-background-color); }
h1 { font-size: 1.4rem; margin: 0; } p { opacity: .75; margin: .2rem 0 1rem; }
"""
"""The theme's variables that the canvas reads, as in `app/.streamlit/config.toml`."""


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
    title, number = escape(found.title), count(found.num_microbatches, "microbatch", "microbatches")
    line = escape(f"{found.line} · {number} · measured above predicted")
    draw = (
        f'import draw from "data:text/javascript;base64,{_base64(SCRIPT.read_bytes())}";'
        f'const data = Uint8Array.from(atob("{_base64(data)}"), (c) => c.charCodeAt(0));'
        'draw({ parentElement: document.getElementById("timeline"), data });'
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<style>{LOOK}{STYLE.read_text()}</style><h1>{title}</h1><p>{line}</p>"
        f'<main id="timeline"></main><script type="module">{draw}</script></html>'
    ).encode()


def _base64(data: bytes) -> str:
    return b64encode(data).decode()
