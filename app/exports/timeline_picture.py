"""A run's timeline as a PNG, drawn without a browser."""

from io import BytesIO
from math import floor, log10

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from app.charts import palette
from app.charts.bars import KINDS, Bars
from app.charts.canvas import WORDS, row_names
from app.exports.last_segment import LastSegment, last_segment
from app.formats import seconds
from backend.bootstrap import Backend
from backend.runs.run import Run

MOST = 600  # bars that can be told apart on so many pixels
WIDTH, GUTTER, RIGHT, TOP, BOTTOM = 2400, 240, 40, 150, 60  # pixels
ROW, BAR, GHOST = 84, 44, 16
INK, QUIET, PAPER, REST = "#1B2430", "#5B6675", "#FFFFFF", "#ECEEF1"
LINE = "#D5D9DE"
TICKS = 8


def timeline_picture(backend: Backend, run: Run) -> bytes:
    """The last segment, measured above predicted, as much as the width holds. Raises
    `NotFound` where there is no timeline yet."""
    return picture(last_segment(backend, run))


def picture(found: LastSegment) -> bytes:
    """The same of any segment."""
    image = Image.new("RGB", (WIDTH, TOP + ROW * found.measured.num_ranks + BOTTOM), PAPER)
    _Page(ImageDraw.Draw(image), found).draw()
    sink = BytesIO()
    image.save(sink, "PNG", optimize=True)
    return sink.getvalue()


def legible(found: LastSegment) -> int:
    """How many of the first microbatches have about `MOST` bars."""
    total, ghost = found.num_microbatches, found.predicted
    bars = len(found.measured) + (len(ghost) if ghost is not None else 0)
    return max(1, min(total, total * MOST // max(bars, 1)))


def _until(bars: Bars | None, stop: int) -> float:
    """When the microbatches before `stop` are done."""
    if bars is None:
        return 0.0
    return float(bars.end[(bars.microbatch >= 0) & (bars.microbatch < stop)].max(initial=0.0))


class _Page:
    """The pen, and where a second lies."""

    def __init__(self, pen: ImageDraw.ImageDraw, found: LastSegment) -> None:
        self._pen, self._found = pen, found
        self._shown = legible(found)
        self._stop = _until(found.measured, self._shown)
        self._extent = max(self._stop, _until(found.predicted, self._shown)) or 1.0

    def draw(self) -> None:
        found = self._found
        said = f"microbatches 0 to {self._shown - 1} of {found.num_microbatches}"
        both = " · measured above predicted" if found.predicted is not None else ""
        self._text((40, 24), found.title, 34)
        self._text((40, 68), f"{found.line}, {said}{both}", 22, QUIET)
        self._legend()
        self._rows()
        self._axis()
        self._bars(found.measured, 0, BAR, labels=True)
        if found.predicted is not None:
            self._bars(found.predicted, BAR + 3, GHOST, labels=False)

    def _at(self, time: float) -> float:
        return GUTTER + min(max(time / self._extent, 0.0), 1.0) * (WIDTH - GUTTER - RIGHT)

    def _drawn(self, bars: Bars) -> list[int]:
        """What takes time in the window; waiting for a receive is the gap."""
        busy = (bars.end > bars.start) & (bars.kind != KINDS.index("<"))
        return [int(row) for row in np.flatnonzero(busy & (bars.start < self._extent))]

    def _legend(self) -> None:
        left, bars = GUTTER, self._found.measured
        for word in dict.fromkeys(_word(bars, row) for row in self._drawn(bars)):
            self._pen.rectangle((left, 112, left + 18, 130), fill=palette.COLOURS[word])
            self._text((left + 26, 108), word, 20, QUIET)
            left += 60 + int(self._pen.textlength(word, _font(20)))

    def _rows(self) -> None:
        for rank, name in enumerate(row_names(self._found.rank_names, self._found.measured)):
            top = TOP + ROW * rank
            self._text((40, top + 10), name, 20)
            self._pen.rectangle((GUTTER, top, self._at(self._stop), top + BAR), fill=REST)

    def _bars(self, bars: Bars, below: int, height: int, *, labels: bool) -> None:
        for row in self._drawn(bars):
            colour = palette.COLOURS[_word(bars, row)]
            top = TOP + ROW * int(bars.rank[row]) + below
            thin = bars.kind[row] == KINDS.index(">")
            first, last = self._at(float(bars.start[row])), self._at(float(bars.end[row]))
            box = (first, top + height - 4 if thin else top, max(last - 1, first), top + height)
            self._pen.rectangle(box, fill=colour if labels else _pale(colour))
            if labels and not thin:
                middle = ((first + last) / 2, top + height / 2)
                self._label(int(bars.microbatch[row]), middle, last - first, colour)

    def _label(self, microbatch: int, at: tuple[float, float], wide: float, colour: str) -> None:
        word = str(microbatch) if microbatch >= 0 else ""
        if word and self._pen.textlength(word, _font(18)) + 4 < wide:
            self._pen.text(at, word, palette.on(colour), _font(18), anchor="mm")

    def _axis(self) -> None:
        bottom = TOP + ROW * self._found.measured.num_ranks
        step = round_step(self._extent / TICKS)
        for tick in range(int(self._extent / step) + 1):
            x = self._at(tick * step)
            self._pen.line((x, TOP - 6, x, bottom), fill=LINE)
            word = seconds(tick * step).replace("\u00a0", " ")
            self._pen.text((x, bottom + 20), word, QUIET, _font(18), anchor="mm")

    def _text(self, at: tuple[float, float], words: str, size: int, ink: str = INK) -> None:
        self._pen.text(at, words.replace("\u00a0", " "), ink, _font(size))


def round_step(least: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is at least `least`, above 0."""
    power = 10.0 ** floor(log10(least))
    return next(power * by for by in (1, 2, 5, 10) if power * by >= least * (1 - 1e-9))


def _word(bars: Bars, row: int) -> str:
    return WORDS[KINDS[bars.kind[row]]]


def _pale(colour: str) -> str:
    """Half way to the paper."""
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{(part + 255) // 2:02x}" for part in parts)


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)
