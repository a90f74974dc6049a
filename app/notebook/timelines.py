"""A timeline in a notebook: the pages' canvas in a frame; a picture where no scripts run."""

from dataclasses import dataclass
from html import escape
from pathlib import Path

from app.charts.bars import Bars
from app.charts.canvas import canvas_bytes, opening, row_names
from app.charts.canvas_page import canvas_page
from app.formats import count, seconds

ALT = "When each rank computes, sends and waits: one row per rank, time to the right"
ROW, AROUND, MOST = 34, 230, 640
"""Pixels of a frame: per rank, around them, and at most."""


@dataclass(frozen=True, eq=False)
class NotebookTimeline:
    """`bars` by columns; `line` says what they are of."""

    title: str
    line: str
    bars: Bars
    rank_names: tuple[str, ...]

    def page(self, *, framed: bool = False) -> bytes:
        """As an HTML file that needs no server and no network."""
        names = row_names(self.rank_names, self.bars)
        data = canvas_bytes(self.bars, names=names, alt=ALT, first=opening(self.bars))
        return canvas_page(data, self.title, self.line, framed=framed)

    def picture(self) -> bytes:
        """As a PNG."""
        from app.exports.last_segment import LastSegment
        from app.exports.timeline_picture import picture

        return picture(LastSegment(self.title, self.line, self.bars, None, self.rank_names))

    def save(self, path: str | Path) -> None:
        """Write it as a page (.html) or a picture (.png), by the path's ending."""
        path = Path(path)
        path.write_bytes(self.picture() if path.suffix == ".png" else self.page())

    def __repr__(self) -> str:
        ranks = count(self.bars.num_ranks, "rank")
        return f"<timeline {self.title}: {ranks}, {seconds(self.bars.makespan)}>"

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> dict[str, str | bytes]:
        tall = min(AROUND + ROW * self.bars.num_ranks, MOST)
        source = escape(self.page(framed=True).decode(), quote=True)
        frame = (
            f'<iframe srcdoc="{source}" title="{escape(ALT)}" '
            f'style="width:100%;height:{tall}px;border:0;color-scheme:normal"></iframe>'
        )
        return {"text/html": frame, "image/png": self.picture(), "text/plain": repr(self)}
