"""`stageflow clusters`: those that are kept by name, for plans."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from app import formats
from app.commands.options.acting import connect
from app.commands.options.labels import label_options
from app.commands.options.shared import STDOUT, Json, taking, write
from app.commands.planning import find_cluster
from app.naming import cluster_words, label_words
from app.server.launch import agent_command
from app.terminal import err, out, print_json, print_table
from backend.cluster.device_record import DeviceRecord
from backend.cluster.document import write_cluster
from backend.cluster.presets import this_machine
from backend.codec import from_json
from backend.cores import usable_cores
from backend.errors import InvalidInput
from backend.runs.history.labels import Change

clusters = typer.Typer(help="The kept clusters.", no_args_is_help=True)

MEASURED = "core (measured)"
"""What the device of a measured cluster is called."""
ClusterId = Annotated[int, typer.Argument(help="Number of a kept cluster.", show_default=False)]
Name = Annotated[str, typer.Argument(help="Its name.", show_default=False)]


@clusters.command("list")
def list_clusters(as_json: Json = False) -> None:
    """List the kept clusters by name."""
    found = connect().clusters.list()
    if as_json:
        return print_json(list(found))
    return print_table(
        formats.count(len(found), "cluster")
        if found
        else "No cluster yet: stageflow clusters save NAME dgx-h100:4",
        ["cluster", "name", "is", "tags", "saved"],
        [
            [
                kept.id,
                kept.name,
                cluster_words(kept.cluster),
                ", ".join(kept.tags),
                formats.ago(kept.created_at),
            ]
            for kept in found
        ],
    )


@clusters.command("save")
def save_cluster(
    name: Name,
    cluster: Annotated[
        str,
        typer.Argument(
            help="YAML file, preset (dgx-h100:4), machines of a pool (pool:gpu:2), or of a run "
            "with their measured speeds (run:42).",
            show_default=False,
        ),
    ],
) -> None:
    """Keep a cluster, so that --cluster NAME and the Plan page know it."""
    kept = connect().clusters.save(name, find_cluster(cluster, 1))
    out.print(f"cluster {kept.id} is {kept.name}", markup=False)


@clusters.command("measure")
def measure_cores(
    devices: Annotated[
        int | None,
        typer.Option(min=1, help="Devices of the cluster (default: the cores of this machine)."),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File to write, as YAML.")
    ] = STDOUT,
) -> None:
    """Measure a core of this machine, and write a cluster of such cores: operations/s and bytes/s
    that it reaches, and the seconds of starting a layer.

    With it `--on cluster` says what this machine would take for a profile from elsewhere. Measure
    while nothing else runs. It takes some seconds.

    Examples:

        stageflow clusters measure -o cores.yaml

        stageflow plan --profile 1 --cluster cores.yaml --on cluster
    """
    found = this_machine(devices or usable_cores())
    record = measured_record()
    cluster = replace(found, device=replace(found.device, name=MEASURED, record=record))
    write(output, write_cluster(cluster).encode())


def measured_record() -> DeviceRecord:
    """That of a core of this machine, measured in a process that has torch. Raises
    `WorkerNotInstalled`, and `InvalidInput` where the measurement ends early."""
    command = agent_command("workers.profiler.device_peaks")
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise InvalidInput(
            f"measuring ended with code {done.returncode}{': ' if last else ''}{''.join(last)}",
            "Look whether torch works here: stageflow doctor.",
        )
    return from_json(DeviceRecord, done.stdout)


@clusters.command("label")
@taking(label_options)
def label_cluster(change: Change, cluster_id: ClusterId) -> None:
    """Change the name, note or tags of a kept cluster."""
    out.print(label_words("cluster", connect().clusters.label(cluster_id, change)), markup=False)


@clusters.command("delete")
def delete_cluster(
    cluster_id: ClusterId,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a kept cluster. Plans made for it stay as they are."""
    service = connect().clusters
    kept = service.get(cluster_id)
    if not yes:
        typer.confirm(f"Delete cluster {kept.id} ({kept.name})?", abort=True)
    err.print(f"cluster {service.delete(cluster_id).id} is deleted")
