"""Options of `stageflow run` that say when checkpoints are taken, and how many stay."""

from typing import Annotated

import typer

SaveUpdates = Annotated[
    int, typer.Option(min=0, help="A checkpoint every so many weight updates; 0 = not by count.")
]
SaveSeconds = Annotated[
    float, typer.Option(min=0, help="And every so many seconds; 0 = not by the clock.")
]
Keep = Annotated[int, typer.Option(min=1, help="Newest checkpoints that stay.")]
