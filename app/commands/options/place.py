"""The options that say whose devices a run is for."""

from typing import Annotated

import typer

from backend.errors import InvalidInput
from backend.runs.request.spec import PoolSpec

MINUTE = 60.0


def pool_spec(
    pool: Annotated[
        str, typer.Option(help="Let jobs of this pool carry it: see `stageflow pool list`.")
    ] = "",
    machines: Annotated[int, typer.Option(min=1, help="Of a job of the pool.")] = 1,
    devices_each: Annotated[
        int, typer.Option(min=0, help="Of each of these machines; 0 = as many as it needs.")
    ] = 0,
    minutes: Annotated[
        float, typer.Option(min=0, help="A job may take; 0 = as long as the pool lets one.")
    ] = 0.0,
) -> PoolSpec | None:
    """None where no pool is named. Raises `InvalidInput`."""
    if pool:
        return PoolSpec(pool, machines, devices_each, minutes * MINUTE)
    if machines > 1 or devices_each or minutes:
        raise InvalidInput(
            "machines, devices of each or minutes are given, and no pool",
            "Name one with --pool, or leave them out.",
        )
    return None
