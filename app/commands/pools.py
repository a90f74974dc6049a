"""`stageflow pool`: submit jobs to a cluster that has a queue of its own, and see its room."""

from typing import Annotated

import typer

from app import formats
from app.commands.options.acting import connect
from app.commands.options.shared import Json
from app.commands.serve import replaced_by
from app.naming import machines_words
from app.server import launch
from app.terminal import print_json, print_table
from backend import bootstrap
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
                machines_words(pool.room.machines),
                str(pool.room.total),
                str(pool.room.free),
                formats.duration(pool.room.longest) if pool.room.longest else "any",
            ]
            for pool in pools
        ],
    )


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


@app.command("slurm")
def slurm(
    partition: Annotated[str, typer.Option(help="Of the cluster, whose jobs carry runs.")],
    name: Name = "slurm",
    sbatch: Annotated[str, typer.Option(help="More options of sbatch, as your site wants.")] = "",
    seconds: Rounds = 5.0,
) -> None:
    """Let jobs of a Slurm cluster carry runs, in your name there. Start it on a login node;
    STAGEFLOW_SHARED is a folder that the cluster's machines reach.

    Examples:

        stageflow pool slurm --partition gpu

        stageflow pool slurm --partition gpu --sbatch "--account=lab --cpus-per-gpu=8"
    """
    _become("slurm", name, seconds, partition=partition, sbatch=sbatch)


@app.command("kubernetes")
def kubernetes(
    namespace: Annotated[str, typer.Option(help="In which jobs are made.")],
    image: Annotated[str, typer.Option(help="With Stageflow and its worker in it.")],
    name: Name = "kubernetes",
    queue: Annotated[str, typer.Option(help="Kueue's LocalQueue there; empty = none.")] = "",
    secret: Annotated[
        str, typer.Option(help="The Secret with the agents' settings as files.")
    ] = "stageflow",
    claim: Annotated[
        str, typer.Option(help="The persistent volume claim that all agents share.")
    ] = "stageflow",
    device: Annotated[
        str, typer.Option(help="The resource that is counted: amd.com/gpu, or cpu.")
    ] = "nvidia.com/gpu",
    cpu: Annotated[str, typer.Option(help="Of each machine with GPUs.")] = "4",
    memory: Annotated[str, typer.Option(help="Of each machine.")] = "16Gi",
    priority: Annotated[str, typer.Option(help="A PriorityClass; empty = the usual one.")] = "",
    user: Annotated[int, typer.Option(min=1, help="Number of the agents' user and group.")] = 10001,
    context: Annotated[str, typer.Option(help="Of the kubeconfig; empty = its current one.")] = "",
    seconds: Rounds = 5.0,
) -> None:
    """Let a Kubernetes cluster carry runs in jobs (docs/guide/kubernetes.md).

    Examples:

        stageflow pool kubernetes --namespace team --queue gpu --image team/stageflow:1
    """
    options = {"namespace": namespace, "image": image, "queue": queue, "secret": secret}
    options |= {"claim": claim, "device": device, "cpu": cpu, "memory": memory}
    options |= {"priority": priority, "context": context}
    _become("kubernetes", name, seconds, **options, user=user)


def _become(kind: str, name: str, seconds: float, **options: object) -> None:
    """The process that submits jobs, with the options of its kind."""
    settings = load_settings()
    bootstrap.connect(settings).close()
    arguments = [kind, "--name", name, "--seconds", str(seconds)]
    for option, value in options.items():
        arguments.append(f"--{option.replace('_', '-')}={value}")
    replaced_by(launch.agent_command("workers.pool_agent", *arguments), settings)
