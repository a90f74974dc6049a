"""The options that say which weights a training begins with."""

from dataclasses import replace
from typing import Annotated

import typer

from backend.bootstrap import Backend
from backend.errors import InvalidInput
from backend.runs.request.spec import TrainSpec
from backend.whole import is_whole

WeightsOption = Annotated[
    str,
    typer.Option(
        help="Begin with a safetensors file (a path, NAME or NAME@VERSION), with the trained "
        "model of a run (run:12), or with a file or folder of shards on the node (node:PATH)."
    ),
]
PartialOption = Annotated[
    bool,
    typer.Option(
        "--weights-partial",
        help="The weights may lack tensors of the model and have others: a base model under a "
        "new head.",
    ),
]


def beginning(backend: Backend, spec: TrainSpec, weights: str) -> TrainSpec:
    """`spec` with the weights that `--weights` says."""
    kind, colon, rest = weights.partition(":")
    if not weights:
        return spec
    if colon and kind == "node":
        if not rest:
            raise InvalidInput("--weights node: names no path", "For example: node:llama/base")
        return replace(spec, weights_path=rest)
    if colon and kind == "run":
        if not is_whole(rest):
            raise InvalidInput(f"--weights {weights} names no run", "For example: run:12")
        return replace(spec, weights_run=int(rest))
    return replace(spec, weights_id=backend.definitions.resolve(weights).id)
