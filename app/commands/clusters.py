"""`stageflow clusters`: those that are kept by name, for plans."""

from typing import Annotated

import typer

from app import formats
from app.commands.options.acting import connect
from app.commands.options.labels import label_options
from app.commands.options.shared import Json, taking
from app.commands.planning import find_cluster
from app.naming import cluster_words, label_words
from app.terminal import err, out, print_json, print_table
from backend.runs.history.labels import Change

clusters = typer.Typer(help="The kept clusters.", no_args_is_help=True)

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
