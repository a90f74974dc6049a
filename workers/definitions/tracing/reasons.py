"""Why a forward cannot be traced, in the words of the person who wrote it, and what to change."""

import linecache
import re
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from traceback import FrameSummary, extract_tb

from backend.errors import first_line

_HERE = Path(__file__).parents[2]
_STANDARD = sysconfig.get_path("stdlib")
_TOOLS = re.compile(r"/site-packages/(torch|functorch|sympy|numpy)/|^<")
"""Files that a person who wrote a model does not look into."""

_BY_VALUE = (
    "it decides by the values of a tensor",
    "Choose by torch.where, or move the choice into a submodule, which is then kept whole.",
)
_CAUSES: tuple[tuple[str, tuple[str, str]], ...] = (
    ("inputs to control flow", _BY_VALUE),
    ("data-dependent", _BY_VALUE),
    (
        "not 'Proxy'",
        (
            "it makes a number of Python's from a tensor",
            "Keep it a tensor of one value.",
        ),
    ),
    ("does not support item assignment", ("it writes into a part of a tensor", "")),
    (
        "cannot be iterated",
        ("it goes through a tensor piece by piece", "Use unbind, split or an index."),
    ),
    (
        "'len' is not supported",
        ("it asks for a tensor's length by len()", "Write x.shape[0] in place of len(x)."),
    ),
    (
        "aten.nonzero",
        (
            "how much it computes depends on the values of a tensor",
            "Choose by torch.where with three arguments, or multiply by a mask.",
        ),
    ),
    (
        "not installed as a submodule",
        (
            "it calls a module that the traced part does not hold",
            "Keep the module in an attribute of the one that calls it.",
        ),
    ),
    (
        "torch.finfo() requires",
        (
            "it asks for the data type of a tensor that is not computed yet",
            "Read the data type off a parameter, such as self.weight.dtype.",
        ),
    ),
    *(
        (
            f"{maker}() takes ",
            (
                "it makes a tensor of a size that is not known yet",
                "Make it like another tensor, by torch.ones_like, zeros_like or x.new_ones.",
            ),
        )
        for maker in ("ones", "zeros", "empty")
    ),
    (
        "attribute assignment",
        ("it assigns an attribute", "Let register_buffer keep what later forwards read."),
    ),
)


OF_LIBRARY = "That is code of {}: there is nothing for you to change."


class Untraceable(ValueError):
    """Tracing found a reason of its own; `advice` says what to change."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice


@dataclass(frozen=True, slots=True)
class Reason:
    """Why an attempt failed: the place in the person's code ("" where there is none), what its
    code does there, and what to change ("" where nothing is known)."""

    place: str
    text: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.text}" if self.place else self.text


def reason_of(error: Exception) -> Reason:
    """In words for the person whose forward raised it under a tracer."""
    if isinstance(error, Untraceable):
        return Reason("", str(error), error.advice)
    said = str(error)
    known = next((cause for sign, cause in _CAUSES if sign in said), None)
    own = [f for f in extract_tb(error.__traceback__) if _is_own(f)]
    place = f"{Path(own[-1].filename).name}, line {own[-1].lineno}" if own else ""
    library = _library(own[-1]) if own else ""
    advice = OF_LIBRARY.format(library) if library else known[1] if known else ""
    if known is None:
        return Reason(place, first_line(error).rstrip("."), advice)
    line = _line(own[-1]) if own else ""
    return Reason(place, known[0] + (f" ({line})" if line else ""), advice)


def _is_own(frame: FrameSummary) -> bool:
    """Whether the frame is of a model's file, or of a library of models."""
    file = Path(frame.filename)
    if _HERE in file.parents:
        return _HERE / "zoo" in file.parents
    if _TOOLS.search(frame.filename):
        return False
    return "site-packages" in file.parts or not frame.filename.startswith(_STANDARD)


def _library(frame: FrameSummary) -> str:
    """The package that the frame is of; "" of a person's own file."""
    parts = Path(frame.filename).parts
    return parts[parts.index("site-packages") + 1] if "site-packages" in parts else ""


def _line(frame: FrameSummary) -> str:
    return (frame.line or linecache.getline(frame.filename, frame.lineno or 0)).strip()
