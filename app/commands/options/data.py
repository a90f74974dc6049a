"""The options of `stageflow run` that say what is learned from."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from backend.runs.request.data_forms import FORMS
from backend.runs.request.data_text import read_buckets, words
from backend.runs.request.sample_specs import TableSpec, pictures_as_told
from backend.runs.request.spec import DataSpec
from backend.runs.request.text_spec import TextSpec, TextTask


def data_spec(
    data: Annotated[
        str, typer.Option(help=f"FORM or FORM:PATH on the node; forms: {', '.join(FORMS)}.")
    ] = "",
    inputs: Annotated[str, typer.Option(help="Input columns, separated by commas.")] = "",
    targets: Annotated[str, typer.Option(help="Columns that the loss compares with.")] = "",
    held_out: Annotated[
        float, typer.Option(min=0, max=0.99, help="Share of samples held out.")
    ] = 0.2,
    length: Annotated[
        int, typer.Option(min=0, help="Tokens (or bytes) per sample of text; 0 = a line.")
    ] = 64,
    last: Annotated[
        Literal["drop", "keep"],
        typer.Option(help="Samples left over: drop them, or keep them in smaller microbatches."),
    ] = "drop",
    buckets: Annotated[str, typer.Option(help="Lengths to pad to: 16,32,64.")] = "",
    tokenizer: Annotated[
        str, typer.Option(help="A tokenizer.json on the node, or its folder.")
    ] = "",
    task: Annotated[
        TextTask, typer.Option(help="The next token, hidden ones, or one text from another.")
    ] = "causal",
    packing: Annotated[
        bool, typer.Option("--packing", help="Texts follow each other in full samples.")
    ] = False,
    answers: Annotated[
        bool, typer.Option("--answers-only", help="Only targets and assistants' messages count.")
    ] = False,
    template: Annotated[
        Path | None, typer.Option(help="File of a chat template (Jinja) for the tokenizer's own.")
    ] = None,
    masked: Annotated[float, typer.Option(min=0, max=1, help="Share of hidden tokens.")] = 0.15,
    augment: Annotated[
        str, typer.Option(help="Pictures in training: crop=4,flip,jitter=0.2,erase=0.25.")
    ] = "",
    normalise: Annotated[
        str, typer.Option(help="Pictures: '0.5 0.4 0.4 / 0.2 0.2 0.2', means and deviations.")
    ] = "",
    fill: Annotated[
        bool, typer.Option("--fill", help="Empty cells get the mean of their column.")
    ] = False,
    standardise: Annotated[
        bool, typer.Option("--standardise", help="Columns of fractions get mean 0, deviation 1.")
    ] = False,
) -> DataSpec:
    """What to learn from. Raises `InvalidInput`."""
    name, _, path = data.partition(":")
    written = template.read_text("utf-8") if template else ""
    return DataSpec(
        name,
        path=path,
        inputs=words(inputs),
        targets=words(targets),
        held_out=held_out,
        length=length,
        last=last,
        buckets=read_buckets(buckets),
        text=TextSpec(tokenizer, task, packing, answers, written, masked),
        pictures=pictures_as_told(augment, normalise),
        table=TableSpec(fill, standardise),
    )
