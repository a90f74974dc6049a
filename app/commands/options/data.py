"""The options by which the command line says what to learn from."""

from dataclasses import replace
from typing import Annotated

import typer

from backend.codec import from_plain
from backend.errors import InvalidInput
from backend.runs.request.data_forms import FORMS
from backend.runs.request.spec import DataSpec
from backend.whole import is_whole

FORM = f"FORM or FORM:PATH on the node; forms: {', '.join(FORMS)}."
Data = Annotated[str, typer.Option(help=FORM)]
Inputs = Annotated[str, typer.Option(help="Columns that go in, separated by commas.")]
Targets = Annotated[str, typer.Option(help="Columns that the loss compares with.")]
HeldOut = Annotated[float, typer.Option(min=0, max=0.99, help="Share of samples held out.")]
Length = Annotated[int, typer.Option(min=0, help="Bytes per sample of text; 0 = a line.")]
Last = Annotated[str, typer.Option(help="Samples left over: drop, or keep in smaller ones.")]
Buckets = Annotated[str, typer.Option(help="Lengths to pad to: 16,32,64.")]


def data_spec(
    data: str,
    inputs: str,
    targets: str,
    held_out: float,
    length: int,
    last: str,
    buckets: str,
) -> DataSpec:
    """What the options say; raises `InvalidInput`."""
    name, _, path = data.partition(":")
    found: DataSpec = from_plain(DataSpec, {"name": name, "path": path, "last": last})
    return replace(
        found,
        inputs=_words(inputs),
        targets=_words(targets),
        held_out=held_out,
        length=length,
        buckets=tuple(_number(word) for word in _words(buckets)),
    )


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _number(word: str) -> int:
    if not is_whole(word):
        raise InvalidInput(f"--buckets {word} is no length", "For example: --buckets 16,32,64")
    return int(word)
