"""How many metrics and lines of an attempt are kept: a note says where they end."""

from backend.runs.events import Metrics

MAX_VALUES, MAX_NAMES = 10_000_000, 1_000
MAX_LINES, MAX_CHARACTERS = 100_000, 128 << 20
"""Of the log, for each attempt."""


class RecordBounds:
    """What one attempt has told so far."""

    words = f"metrics end here: more than {MAX_VALUES:,} values or {MAX_NAMES:,} names"
    log_words = f"more than {MAX_LINES} lines or {MAX_CHARACTERS >> 20} MiB"

    def __init__(self) -> None:
        self._values = self._lines = self._characters = 0
        self._names: set[str] = set()

    def admits(self, metrics: Metrics) -> bool:
        """Are these values still to be kept?"""
        if metrics.name not in self._names and len(self._names) == MAX_NAMES:
            return False
        self._names.add(metrics.name)
        self._values += len(metrics.values)
        return self._values <= MAX_VALUES

    def admits_line(self, text: str) -> bool:
        """Is this line of a rank?"""
        self._lines += 1
        self._characters += len(text)
        return self._lines <= MAX_LINES and self._characters <= MAX_CHARACTERS
