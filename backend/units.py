"""Seconds, bytes and shares as words inside the sentences that the backend writes."""


def seconds_text(seconds: float) -> str:
    """Three digits and a unit: "6.10 ms", "1.24 s"."""
    for limit, unit in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= limit:
            return f"{_three_digits(seconds / limit)} {unit}"
    return f"{_three_digits(seconds * 1e6)} µs"


def duration_text(seconds: float) -> str:
    """A long time in its two largest parts: "42 s", "1 min 12 s", "2 h 05 min", "3 d 4 h"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, rest = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {rest:02d} min"
    return f"{hours // 24} d {hours % 24} h"


def bytes_text(count: float) -> str:
    """Three digits and a binary unit: "21.0 MiB", "1.40 GiB"."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if count >= 1024**power:
            return f"{_three_digits(count / 1024**power)} {unit}"
    return count_text(round(count), "byte")


def joules_text(joules: float) -> str:
    """Three digits and a decimal unit: "12.0 mJ", "1.24 J"."""
    return _decimal(joules, "J")


def watts_text(watts: float) -> str:
    """Likewise: "7.70 W", "4.80 kW"."""
    return _decimal(watts, "W")


def percent_text(share: float, digits: int = 0) -> str:
    """A share: 0.357 is "36 %"."""
    return f"{share * 100:.{digits}f} %"


def count_text(count: int, noun: str) -> str:
    """A number of things: "1 rank", "1,024 ranks"."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _decimal(value: float, unit: str) -> str:
    for size, prefix in ((1e6, "M"), (1e3, "k"), (1.0, "")):
        if value >= size:
            return f"{_three_digits(value / size)} {prefix}{unit}"
    return f"{_three_digits(value * 1e3)} m{unit}"


def _three_digits(value: float) -> str:
    decimals = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{decimals}f}"
