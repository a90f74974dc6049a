"""Words of programs and strangers on a terminal: control characters are shown, not sent."""

LINES = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\n\t"}
"""The pictures of C0 that Unicode has, https://www.unicode.org/charts/PDF/U2400.pdf."""
REST = (*range(0x80, 0xA0), 0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
"""C1, which terminals obey as well; ends of lines and turns of direction beyond ASCII."""
TEXT = LINES | {0x7F: "\N{SYMBOL FOR DELETE}"} | dict.fromkeys(REST, "\N{REPLACEMENT CHARACTER}")
LINE = TEXT | {10: "\N{SYMBOL FOR LINE FEED}", 9: "\N{SYMBOL FOR HORIZONTAL TABULATION}"}
JSON = {code: f"\\u{code:04x}" for code in (0x7F, *REST)}


def text(words: str) -> str:
    """As long as `words`, which may have several lines."""
    return words.translate(TEXT)


def line(words: str) -> str:
    """The same in one line: nobody adds a row."""
    return words.translate(LINE)


def json(document: str) -> str:
    """The same JSON, in which C0 is escaped already."""
    return document.translate(JSON)
