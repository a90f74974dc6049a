"""What the next pages need of the browser, fetched and compiled while it is idle.

The charts' library takes a second to compile: waiting for it on the first page that has a chart
is what a visitor would feel. It is found by the name that Streamlit gives its parts; where a
Streamlit names them otherwise, nothing is loaded ahead.

A link that is clicked with Ctrl, Shift or the command key opens a tab or a window of its own, as
links do: Streamlit would open it in the same place.
"""

import json
from pathlib import Path

import streamlit as st

PARTS = ("BidiComponent", "ArrowVegaLiteChart", "loadVegaEmbed", "DataFrame", "PlotlyChart")
BUNDLE = Path(st.__file__).parent / "static" / "static" / "js"
REST = 500  # milliseconds that the page is left alone with its own drawing


def addresses() -> list[str]:
    """Paths of the parts on this server, the smallest first."""
    found = [file for part in PARTS for file in BUNDLE.glob(f"{part}.*.js")]
    return [f"static/js/{file.name}" for file in sorted(found, key=lambda f: f.stat().st_size)]


SCRIPT = f"""<script>
  if (!window.stageflowAhead) {{
    window.stageflowAhead = true;
    window.addEventListener("click", (event) => {{
      const aside = event.ctrlKey || event.metaKey || event.shiftKey;
      if (aside && event.target.closest?.("a[href]")) event.stopPropagation();
    }}, true);
    const parts = {json.dumps(addresses())};
    const idle = window.requestIdleCallback || ((act) => setTimeout(act, 200));
    const next = () => {{
      const part = parts.shift();
      const url = new URL(`/${{part}}`, document.baseURI).href;
      if (part) import(url).catch(() => undefined).finally(() => idle(next));
    }};
    setTimeout(() => idle(next), {REST});
  }}
</script>"""


def load_ahead() -> None:
    """Once per visit; draws nothing."""
    with st.container(key="load-ahead"):
        st.html(SCRIPT, unsafe_allow_javascript=True)
