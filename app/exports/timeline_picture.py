"""A run's timeline as a PNG, drawn without a browser."""

from collections.abc import Iterable
from io import BytesIO
from math import floor, log10

from PIL import Image, ImageDraw, ImageFont

from app.charts import palette
from app.charts.timeline import Stretch, microbatch
from app.exports.last_segment import Picture, last_segment
from app.formats import seconds
from backend.bootstrap import Backend
from backend.pipeline.actions import Recv, Send
from backend.pipeline.kinds import kind
from backend.pipeline.timeline import Span
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
    found = last_segment(backend, run, MOST)
    image = Image.new("RGB", (WIDTH, TOP + ROW * found.measured.num_ranks + BOTTOM), PAPER)
    _Page(ImageDraw.Draw(image), found).draw()
    sink = BytesIO()
    image.save(sink, "PNG", optimize=True)
    return sink.getvalue()


class _Page:
    """The pen, and where a second lies."""

    def __init__(self, pen: ImageDraw.ImageDraw, found: Picture) -> None:
        self._pen, self._found = pen, found
        ghost = found.predicted.seconds if found.predicted else 0.0
        self._extent = max(found.measured.seconds, ghost) or 1.0

    def draw(self) -> None:
        self._text((40, 24), self._found.title, 34)
        self._text((40, 68), self._found.line, 22, QUIET)
        self._legend()
        self._rows()
        self._axis()
        self._bars(self._found.measured, 0, BAR, labels=True)
        if self._found.predicted:
            self._bars(self._found.predicted, BAR + 3, GHOST, labels=False)

    def _at(self, time: float) -> float:
        return GUTTER + min(max(time / self._extent, 0.0), 1.0) * (WIDTH - GUTTER - RIGHT)

    def _legend(self) -> None:
        left = GUTTER
        for word in dict.fromkeys(kind(span.action) for span in _drawn(self._found.measured)):
            self._pen.rectangle((left, 112, left + 18, 130), fill=palette.COLOURS[word])
            self._text((left + 26, 108), word, 20, QUIET)
            left += 60 + int(self._pen.textlength(word, _font(20)))

    def _rows(self) -> None:
        for rank in range(self._found.measured.num_ranks):
            top = TOP + ROW * rank
            named = dict(enumerate(self._found.rank_names)).get(rank, f"rank {rank}")
            self._text((40, top + 10), named, 20)
            stop = self._at(self._found.measured.seconds)
            self._pen.rectangle((GUTTER, top, stop, top + BAR), fill=REST)

    def _bars(self, stretch: Stretch, below: int, height: int, *, labels: bool) -> None:
        for span in _drawn(stretch):
            colour = palette.COLOURS[kind(span.action)]
            top = TOP + ROW * span.rank + below
            thin = isinstance(span.action, Send)
            first, last = self._at(span.start), self._at(span.end)
            box = (first, top + height - 4 if thin else top, max(last - 1, first), top + height)
            self._pen.rectangle(box, fill=colour if labels else _pale(colour))
            if labels and not thin:
                self._label(span, (first + last) / 2, top + height / 2, last - first, colour)

    def _label(self, span: Span, x: float, y: float, wide: float, colour: str) -> None:
        word = str(microbatch(span.action)) if microbatch(span.action) >= 0 else ""
        if word and self._pen.textlength(word, _font(18)) + 4 < wide:
            self._pen.text((x, y), word, palette.on(colour), _font(18), anchor="mm")

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


def _drawn(stretch: Stretch) -> Iterable[Span]:
    """What takes time; waiting for a receive is the gap."""
    return (s for s in stretch.spans if s.seconds > 0 and not isinstance(s.action, Recv))


def _pale(colour: str) -> str:
    """Half way to the paper."""
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{(part + 255) // 2:02x}" for part in parts)


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)
