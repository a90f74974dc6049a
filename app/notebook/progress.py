"""How far something is, in the notebook's own output; nothing where there is no notebook."""

import sys
from html import escape
from typing import Any

from app.formats import count


class ProgressLine:
    """A line below the cell, drawn anew with each step."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._handle: Any = None
        self._said = ""

    def __call__(self, phase: str, done: int, total: int) -> None:
        """`done` of `total` of a phase; 0 of 0 where nobody knows."""
        of = f" {done:,} of {count(total)}" if total else ""
        self._show(f"{self._name}: {phase}{of}", done / total if total else 0.0)

    def end(self, said: str) -> None:
        """The last line."""
        self._show(f"{self._name}: {said}", 1.0)

    def _show(self, said: str, share: float) -> None:
        if said == self._said or "ipykernel" not in sys.modules:
            return
        self._said = said
        from IPython.display import HTML, display

        bar = f'<progress value="{share:.4f}" max="1" style="width:16em"></progress>'
        shown = HTML(f'<div style="color:inherit">{bar} {escape(said)}</div>')
        if self._handle is None:
            self._handle = display(shown, display_id=True)
        else:
            self._handle.update(shown)
