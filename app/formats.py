"""Seconds, bytes and ratios as text for eyes: the only place where units are converted."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, tzinfo
from functools import wraps
from math import isfinite
from typing import Concatenate, ParamSpec

from backend.runs.events import SENT, SENT_PLAIN, SITES_SENT, SITES_SUMS, SUMS_PLAIN, SUMS_SENT
from backend.units import duration_text, joules_text

SPACE = "\u00a0"  # a number and its unit stay on one line
NOTHING = "—"
BYTES = (SENT, SENT_PLAIN, SUMS_SENT, SUMS_PLAIN, SITES_SENT, SITES_SUMS)
"""Metrics of runs that are bytes."""
_UNIT = re.compile(r"(?<=\d) (?=%|([mµ]?s|min|h|[KMGT]iB|[kMGT]?B/s|bytes?|m?J|k?W)\b)")
P = ParamSpec("P")


def of_numbers(
    write: Callable[Concatenate[float, P], str],
) -> Callable[Concatenate[float | None, P], str]:
    """`write`, and `NOTHING` for what is not a finite number."""

    @wraps(write)
    def written(value: float | None, /, *args: P.args, **kwargs: P.kwargs) -> str:
        if value is None or not isfinite(value):
            return NOTHING
        return write(value, *args, **kwargs)

    return written


@of_numbers
def seconds(value: float) -> str:
    """A short time with three digits: "3.20 ms", "46.7 ms", "1.24 s"; above two minutes as
    `duration`."""
    if abs(value) >= 120:
        return duration(value)
    factor, unit = time_unit(value)
    return f"{_three(value * factor)}{SPACE}{unit}"


def signed_seconds(value: float) -> str:
    """A difference of times: "+3.20 ms", "−46.7 ms", "0 s"."""
    return f"{'+' if value > 0 else ''}{seconds(value)}"


def time_unit(extent: float) -> tuple[float, str]:
    """What to multiply seconds by, and the unit's name, so that `extent` reads well."""
    for limit, factor, unit in ((1.0, 1.0, "s"), (1e-3, 1e3, "ms"), (1e-6, 1e6, "µs")):
        if abs(extent) >= limit:
            return factor, unit
    return (1e9, "ns") if extent else (1.0, "s")


@of_numbers
def duration(value: float) -> str:
    """`duration_text`, on one line."""
    return duration_text(value).replace(" ", SPACE)


def clock(ahead: float) -> str:
    """A clock that is so many seconds ahead, as "clock 1 h 00 min ahead", "clock 42 s behind"."""
    return f"clock {duration(abs(ahead))} {'ahead' if ahead > 0 else 'behind'}"


@of_numbers
def size(value: float) -> str:
    """Bytes with a binary unit: "512 B", "26.4 MiB", "1.40 GiB"."""
    factor, unit = size_unit(value)
    amount = f"{value:.0f}" if unit == "B" else _three(value * factor)
    return f"{amount}{SPACE}{unit}"


def size_unit(extent: float) -> tuple[float, str]:
    """What to multiply bytes by, and the unit's name, so that `extent` reads well."""
    for power, unit in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        if abs(extent) >= 1024**power:
            return 1 / 1024**power, unit
    return 1.0, "B"


@of_numbers
def bandwidth(value: float) -> str:
    """Bytes per second with a decimal unit, as links are sold: "12.0 GB/s"."""
    return _decimal(value, "B/s")


@of_numbers
def joules(value: float) -> str:
    """Energy with a decimal unit: "12.0 mJ", "1.24 J"."""
    return joules_text(value).replace(" ", SPACE)


@of_numbers
def operations(value: float) -> str:
    """Floating point operations with a decimal unit: "1.20 GFLOP"."""
    return _decimal(value, "FLOP")


def _decimal(value: float, unit: str) -> str:
    for power, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= power:
            return f"{_three(value / power)}{SPACE}{prefix}{unit}"
    return f"{value:.0f}{SPACE}{unit}"


@of_numbers
def rate(value: float) -> str:
    """Things per second: "1,372/s", "17.1/s"."""
    return f"{_three(value)}/s"


@of_numbers
def percent(value: float, digits: int = 1) -> str:
    """A share: 0.021 is "2.1 %"."""
    return f"{value * 100:.{digits}f}{SPACE}%".replace("-", "−")


def between(ends: tuple[float, float] | None, write: Callable[[float], str]) -> str:
    """A range, as "812/s to 950/s"; "" where there is none."""
    return f"{write(ends[0])} to {write(ends[1])}" if ends else ""


def change(value: float, base: float) -> str:
    """How far `value` is from `base`, signed: "+3.1 %", "−46 %", "−99.8 %"; from twice as much on
    the factor, "24×"."""
    if not base or not isfinite(value / base):
        return NOTHING
    if value / base >= 2:
        return times(value / base)
    share = value / base - 1
    digits = 1 if abs(share) < 0.1 or 0.95 < abs(share) < 1 else 0
    return f"{share * 100:+.{digits}f}{SPACE}%".replace("-", "−")


@of_numbers
def times(value: float) -> str:
    """A factor: "1.03×", "5.1×"."""
    return f"{value:.2f}×" if abs(value) < 2 else f"{_three(value, digits=2)}×"


def stages_words(numbers: Sequence[int]) -> str:
    """ "stage 2", or of a device that has several "stages 0, 7"."""
    return f"stage{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"


def count(value: int | None, noun: str = "", plural: str = "") -> str:
    """A number of things: "1,400", "1 replica", "15 replicas"."""
    if value is None:
        return NOTHING
    if not noun:
        return f"{value:,}"
    return f"{value:,}{SPACE}{noun if value == 1 else plural or noun + 's'}"


@of_numbers
def number(value: float) -> str:
    """A plain figure such as a loss, with three digits."""
    return _three(value)


def ago(value: datetime | None, now: datetime | None = None) -> str:
    """How long ago: "just now", "5 min ago", "3 h ago", "4 d ago", then the date."""
    if value is None:
        return NOTHING
    passed = ((now or datetime.now(UTC)) - value).total_seconds()
    if passed < 45:
        return "just now"
    if passed < 3600:
        return f"{max(1, round(passed / 60))}{SPACE}min ago"
    if passed < 86400:
        return f"{round(passed / 3600)}{SPACE}h ago"
    return f"{round(passed / 86400)}{SPACE}d ago" if passed < 30 * 86400 else f"{value:%Y-%m-%d}"


def moment(value: datetime | None, zone: tzinfo | None = None) -> str:
    """The time of day, with the date in front when it is not today's: "14:02"."""
    if value is None:
        return NOTHING
    local = value.astimezone(zone or UTC)
    today = datetime.now(UTC).astimezone(zone or UTC).date()
    return f"{local:%H:%M}" if local.date() == today else f"{local:%Y-%m-%d %H:%M}"


def shorten(text: str, limit: int) -> str:
    """`text` in at most `limit` characters; what is left out comes from the middle."""
    if len(text) <= limit:
        return text
    head = (limit - 1) // 3
    return f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"


def _three(value: float, digits: int = 3) -> str:
    size = abs(value)
    if size >= 100 or (size >= 10 and digits < 3):
        text = f"{value:,.0f}"
    elif size >= 10 or (size >= 1 and digits < 3):
        text = f"{value:.1f}"
    elif size >= 1 or size == 0:
        text = f"{value:.{2 if size else 0}f}"
    else:
        text = f"{value:.{digits}g}"
    return text.replace("-", "−")


def sentence(text: str) -> str:
    """`text` with a capital letter at its start, the rest as it is. A name at the start keeps its
    case where it shows that it is one: empty.py, fc_1, vgg@2."""
    first = text.partition(" ")[0].rstrip(":,.")
    return text[:1].upper() + text[1:] if first.isalpha() or "'" in first else text


def unbroken(text: str) -> str:
    """`text` of the backend with each number on the line of its unit: "44.4 ms", "98 %"."""
    return _UNIT.sub(SPACE, text)


def plain(text: str) -> str:
    """`text` so that Markdown shows it as it is written."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]()#+!|<>~$:" else c for c in text)


def metric_value(name: str, value: float | None) -> str:
    """A value of a run's metric: bytes as sizes, others as numbers."""
    return size(value) if name in BYTES else number(value)
