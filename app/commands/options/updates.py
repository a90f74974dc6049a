"""The options by which the command line says how updates are made, and in which precision."""

from typing import Annotated, Literal, cast, get_args

import typer

from backend.errors import InvalidInput

Named = Literal["float32", "bfloat16", "float16"]
WeightDecay = Annotated[float, typer.Option(min=0, help="Weight decay.")]
Clip = Annotated[
    float | None, typer.Option(min=0, help="Most that the whole gradient's norm may be.")
]
WarmUp = Annotated[float, typer.Option(min=0, help="Epochs in which the rate rises from 0.")]
Decay = Annotated[str, typer.Option(help="How the rate falls: none, step, linear or cosine.")]
Precision = Annotated[str, typer.Option(help="Of the compute: float32, bfloat16 or float16.")]


def precision_of(name: str) -> Named:
    """Raises `InvalidInput` for another one."""
    if name not in get_args(Named):
        raise InvalidInput(f"no precision {name!r}", f"There are {', '.join(get_args(Named))}.")
    return cast(Named, name)
