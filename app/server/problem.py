"""The one form in which the REST API says that something went wrong."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """`error` says what is wrong, `advice` what to do; `kind` is for programs ("NotFound"),
    `status` repeats the HTTP status."""

    error: str
    advice: str
    kind: str
    status: int
