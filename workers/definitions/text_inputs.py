"""What a model of texts says of the tokens that it takes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextInputs:
    """names       of its inputs, by position; () = those of its example, or the usual ones
    vocabulary  how many tokens it knows; None = not said
    longest     most tokens of a sample, likewise
    start       what a decoder begins with, likewise
    """

    names: tuple[str, ...] = ()
    vocabulary: int | None = None
    longest: int | None = None
    start: int | None = None
