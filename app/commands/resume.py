"""`stageflow resume` and `stageflow attempts`: going on from a checkpoint, and what came before."""

from typing import Annotated

import typer

from app import formats
from app.commands.follow import follow, node_agent
from app.commands.history import RunId, show
from app.commands.options.acting import connect
from app.commands.options.shared import Detach, Json
from app.terminal import out, print_json, print_table


def resume(
    run_id: RunId,
    plan_id: Annotated[
        int | None, typer.Option("--plan", help="Id of a saved plan to go on with.")
    ] = None,
    epochs: Annotated[int, typer.Option(min=0, help="Epochs in all; 0 = as many as before.")] = 0,
    detach: Detach = False,
    as_json: Json = False,
) -> None:
    """Go on with an ended training from its newest checkpoint, as a new run.

    Examples:

        stageflow resume 42

        stageflow resume 42 --plan 7 --epochs 20
    """
    backend = connect()
    resumed = backend.runs.resume(run_id, plan_id, epochs)
    if detach:
        return print_json({"id": resumed.id}) if as_json else out.print(f"run {resumed.id} waits")
    with node_agent(backend):
        final = follow(backend, resumed)
    return show(final.id, as_json)


def attempts(run_id: RunId, as_json: Json = False) -> None:
    """List the attempts at a run: where, from which step, how each ended.

    Example:

        stageflow attempts 42
    """
    backend = connect()
    backend.runs.get(run_id)
    found = backend.runs.attempts(run_id)
    if as_json:
        return print_json(found)
    print_table(
        f"run {run_id}: {len(found)} attempts",
        ["attempt", "node", "started", "from step", "outcome", "reason"],
        [
            [
                one.number,
                one.node,
                formats.ago(one.started_at),
                "" if one.step is None else one.step,
                one.outcome or "goes on",
                one.error.message if one.error else "",
            ]
            for one in found
        ],
    )
    return None
