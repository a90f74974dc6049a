"""Names of machines as Slurm shortens them: "n[1-3,07],login" are n1, n2, n3, n07 and login."""

import re
from collections.abc import Iterator
from itertools import product

from backend.errors import InvalidInput

NAME = re.compile(r"(?:[^,\[\]]|\[[^\[\]]+\])+")
"""One name, shortened or not: commas within brackets do not part names."""
BRACKETS = re.compile(r"\[([^\[\]]+)\]")
NUMBERS = re.compile(r"(\d+)(?:-(\d+))?")


def hosts(text: str) -> tuple[str, ...]:
    """Each name in full, in the order given. Raises `InvalidInput`."""
    names = NAME.findall(text)
    if ",".join(names) != text:
        raise InvalidInput(f"{text!r} are not names of machines")
    return tuple(full for name in names for full in _written_out(name))


def _written_out(name: str) -> Iterator[str]:
    """Of "a[1-2]b": "a1b" and "a2b". Every second part is what stood in brackets."""
    parts = BRACKETS.split(name)
    choices = [
        list(_numbers(part)) if is_odd else [part]
        for part, is_odd in zip(parts, [False, True] * len(parts), strict=False)
    ]
    return ("".join(chosen) for chosen in product(*choices))


def _numbers(ranges: str) -> Iterator[str]:
    """Of "08-10,12": 08, 09, 10, 12, as wide as the first number of a range is."""
    for part in ranges.split(","):
        if not (found := NUMBERS.fullmatch(part)):
            raise InvalidInput(f"[{ranges}] are not numbers of machines")
        first, last = found[1], found[2] or found[1]
        yield from (str(n).zfill(len(first)) for n in range(int(first), int(last) + 1))
