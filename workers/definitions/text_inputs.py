"""What a model of texts says of the tokens that it takes."""

from dataclasses import dataclass

from backend.runs.request.text_spec import TextTask


@dataclass(frozen=True, slots=True)
class TextInputs:
    """names       of its inputs, by position; () = those of its example, or the usual ones
    vocabulary  how many tokens it knows; None = not said
    longest     most tokens of a sample, likewise
    start       what a decoder begins with, likewise
    task        what it learns, likewise: a `TextTask`
    """

    names: tuple[str, ...] = ()
    vocabulary: int | None = None
    longest: int | None = None
    start: int | None = None
    task: TextTask | None = None
