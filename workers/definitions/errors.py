"""Errors that a user's own code causes, told with the user's own lines."""

import traceback
from pathlib import Path

from backend.errors import StageflowError


class UserCodeFailed(StageflowError):
    """Base of the errors below; `detail` is the traceback of the user's frames."""

    def __init__(self, message: str, advice: str = "", detail: str = "") -> None:
        super().__init__(message, advice)
        self.detail = detail


class DefinitionFailed(UserCodeFailed):
    """A definition file cannot be loaded, or breaks the contract."""

    advice = (
        "Correct the definition and upload it again. It needs model(), and example(batch) unless "
        "the data set gives one."
    )


class ModelRaised(UserCodeFailed):
    """The user's model, or its loss, raised while it ran."""

    advice = "Run the model on one batch of this size by hand; the traceback names the line."


def line_of(error: BaseException, file: Path) -> int | None:
    """The last line of `file` on the way to `error`; None if it never passed there."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(file)]
    return lines[-1] if lines else None


def user_traceback(error: BaseException, file: Path) -> str:
    """The traceback from the first frame in `file` on (all of it if there is none)."""
    told = traceback.TracebackException.from_exception(error)
    for index, frame in enumerate(told.stack):
        if frame.filename == str(file):
            told.stack = traceback.StackSummary.from_list(list(told.stack)[index:])
            break
    return "".join(told.format())


def describe(error: BaseException, file: Path) -> str:
    """'vgg.py, line 12: ValueError: bad width' (without a line where there is none)."""
    line = line_of(error, file)
    place = f"{file.name}, line {line}" if line else file.name
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{place}: {type(error).__name__}{': ' + text if text else ''}"
