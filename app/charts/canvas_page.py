"""A timeline as one HTML file that needs no server and no network, drawn by the pages' canvas."""

from base64 import b64encode
from html import escape

from app.charts.canvas import SCRIPT, STYLE

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
HOST = """
try {
  const [r, g, b] = getComputedStyle(frameElement.parentElement).color.match(/[0-9.]+/g);
  const look = document.documentElement.style, dark = 0.3 * r + 0.6 * g + 0.1 * b > 128;
  document.documentElement.style.colorScheme = dark ? "dark" : "light";
  look.setProperty("--st-text-color", dark ? "#E3E7ED" : "#1B2430");
  let paper = frameElement, shade;
  do shade = getComputedStyle(paper = paper.parentElement).backgroundColor;
  while (/, 0\\)$|^transparent$/.test(shade) && paper.parentElement);
  look.setProperty("--st-background-color", paper.parentElement ? shade : dark ? "#111" : "#FFF");
  look.setProperty("--st-border-color", dark ? "#2C343F" : "#E1E5EB");
  look.setProperty("--st-primary-color", dark ? "#1E7AB8" : "#0072B2");
  addEventListener("load", () => new ResizeObserver(() => {
    frameElement.style.height = `${document.body.offsetHeight + 24}px`;
  }).observe(document.body));
} catch { /* a frame of another origin: as the reader's system is */ }
"""
"""Inside a frame the look is that of the page around it: light or dark by the colour of its text,
its background; and the frame is as tall as what is in it."""


def canvas_page(data: bytes, title: str, line: str, *, framed: bool = False) -> bytes:
    """What `app.charts.canvas.canvas_bytes` has packed, under a title and a line of words."""
    draw = (
        f'import draw from "data:text/javascript;base64,{_base64(SCRIPT.read_bytes())}";'
        f'const data = Uint8Array.from(atob("{_base64(data)}"), (c) => c.charCodeAt(0));'
        'draw({ parentElement: document.getElementById("timeline"), data });'
    )
    title, line = escape(title), escape(line)
    host = f"<script>{HOST}</script><style>body {{ margin: 0.5rem; }}</style>" if framed else ""
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<style>{LOOK}{STYLE.read_text()}</style>{host}<h1>{title}</h1><p>{line}</p>"
        f'<main id="timeline"></main><script type="module">{draw}</script></html>'
    ).encode()


def _base64(data: bytes) -> str:
    return b64encode(data).decode()
