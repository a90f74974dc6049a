"""`stageflow pool`: submit jobs to a cluster that has a queue of its own, and see its room."""

from typing import Annotated

import typer

from app import formats
from app.commands.options.acting import connect
from app.commands.options.shared import Json
from app.commands.serve import replaced_by
from app.server import launch
from app.terminal import print_json, print_table
from backend import bootstrap
from backend.runs.pools.room import Machines
from backend.settings import load_settings

app = typer.Typer(help="Pools: clusters whose jobs carry runs.", no_args_is_help=True)

Name = Annotated[str, typer.Option(help="Of the pool (default: the kind of cluster).")]
Rounds = Annotated[float, typer.Option(min=0.1, help="Seconds between two looks at the queue.")]
Longest = Annotated[float, typer.Option(min=0, help="Minutes that a job may take; 0 = any.")]


@app.command("list")
def list_pools(as_json: Json = False) -> None:
    """The pools with what they have and what of it is free."""
    pools = connect().pools.list()
    if as_json:
        return print_json(list(pools))
    return print_table(
        "pools",
        ["pool", "kind", "state", "machines", "devices", "free", "longest job"],
        [
            [
                pool.name,
                pool.kind,
                pool.fault or ("alive" if pool.alive else "silent"),
                ", ".join(map(machines, pool.room.machines)) or "not known",
                str(pool.room.total),
                str(pool.room.free),
                formats.duration(pool.room.longest) if pool.room.longest else "any",
            ]
            for pool in pools
        ],
    )


def machines(kind: Machines) -> str:
    """As "4 with 8 h100"."""
    return f"{kind.count} with {kind.devices} {kind.device.name}"


@app.command("local")
def local(
    name: Name = "local",
    machines: Annotated[int, typer.Option(min=1, help="That take turns on this one.")] = 1,
    longest: Longest = 0.0,
    seconds: Rounds = 2.0,
) -> None:
    """Let this machine carry runs in jobs that wait in a folder: a cluster of one machine, to try
    pools with.

    Examples:

        stageflow pool local

        stageflow pool local --name nights --longest 480
    """
    _become("local", name, seconds, machines=machines, longest=60 * longest)


def _become(kind: str, name: str, seconds: float, **options: object) -> None:
    """The process that submits jobs, with the options of its kind."""
    settings = load_settings()
    bootstrap.connect(settings).close()
    arguments = [kind, "--name", name, "--seconds", str(seconds)]
    for option, value in options.items():
        arguments += [f"--{option.replace('_', '-')}", str(value)]
    replaced_by(launch.agent_command("workers.pool_agent", *arguments), settings)
