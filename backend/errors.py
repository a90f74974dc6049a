"""Errors that a person can mend: a noun, what is wrong with it, and what to do."""

from typing import Any


class StageflowError(Exception):
    """Base of every error whose message is written for the person who reads it.

    `str(error)` says what is wrong, with the numbers; `advice` says what to do next.
    Pages and the command line show both and never a traceback.
    """

    advice: str = ""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        if advice:
            self.advice = advice
        if self.advice:
            self.add_note(self.advice)  # a notebook shows a traceback, and its notes

    def __reduce__(self) -> tuple[Any, ...]:
        """As it was raised also where its class is made of other values than a text: searches are
        in other processes."""
        return _as_raised, (type(self), self.args, self.__dict__)


def _as_raised(
    kind: type[StageflowError], args: tuple[Any, ...], state: dict[str, Any]
) -> StageflowError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class NotFound(StageflowError):
    """An id or a name that nothing answers to."""


class InvalidInput(StageflowError):
    """A value that a person gave and that cannot be used as it is."""


def listed(page: str, command: str) -> str:
    """Where people find the ids and names that there are, in the browser and in a terminal."""
    return f"List them: page {page}, or stageflow {command}"


def first_line(fault: object) -> str:
    """The first line of an error's text; the name of its class where it has none."""
    return next(iter(str(fault).strip().splitlines()), type(fault).__name__)
