"""`stageflow sweep`: trainings over values of settings, which `stageflow run --vary` starts."""

from typing import Annotated

import typer

from app import formats
from app.commands.options.acting import connect
from app.commands.options.shared import Json
from app.naming import sweep_words
from app.terminal import err, out, print_json, print_table
from backend.bootstrap import Backend
from backend.runs.sweeps.axes import HINT
from backend.runs.sweeps.report import SweepReport
from backend.runs.sweeps.sweep import SweepSpec

app = typer.Typer(
    help=f"Sweeps, which `stageflow run --plan 1 --vary lr=0.1,0.01` starts. {HINT}",
    no_args_is_help=True,
)
SweepId = Annotated[int, typer.Argument(help="The sweep's number.", show_default=False)]


def started(backend: Backend, spec: SweepSpec, name: str, as_json: bool) -> None:
    """Queue all runs of a sweep, and say so."""
    sweep = backend.sweeps.start(spec, name)
    if as_json:
        return print_json({"id": sweep.id, "runs": sweep.run_ids})
    return out.print(f"sweep {sweep.id}: {formats.count(len(sweep.runs), 'run')} queued")


@app.command("list")
def list_sweeps(as_json: Json = False) -> None:
    """List the newest sweeps."""
    found = connect().sweeps.list()
    if as_json:
        return print_json([_plain(each) for each in found])
    return print_table(
        formats.count(len(found), "sweep"),
        ["sweep", "name", "varies", "progress", "best", "created"],
        [
            [
                each.sweep.id,
                each.sweep.name,
                ", ".join(axis.name for axis in each.sweep.spec.axes),
                sweep_words(each),
                _best(each),
                formats.ago(each.sweep.created_at),
            ]
            for each in found
        ],
    )


@app.command("show")
def show_sweep(sweep_id: SweepId, as_json: Json = False) -> None:
    """Show the runs of a sweep, with their values and what became of them.

    Example:

        stageflow sweep show 3
    """
    found = connect().sweeps.get(sweep_id)
    if as_json:
        return print_json(_plain(found))
    names = [axis.name for axis in found.sweep.spec.axes]
    metric = found.sweep.spec.early.metric
    print_table(
        f"sweep {sweep_id}: {sweep_words(found)}",
        ["", "run", *names, "state", metric, "samples/s", "took", "ended early"],
        [
            [
                "best" if each.number == found.best else "",
                each.run_id or "",
                *(_text(each.values[name]) for name in names),
                each.state.value if each.state else "deleted",
                formats.number(each.metric),
                formats.number(each.samples_per_second),
                formats.duration(each.seconds),
                each.ended,
            ]
            for each in found.results
        ],
    )
    return None


@app.command("cancel")
def cancel_sweep(sweep_id: SweepId) -> None:
    """Cancel all runs of a sweep that have not ended."""
    err.print(f"sweep {sweep_id}: {sweep_words(connect().sweeps.cancel(sweep_id))}")


def _plain(found: SweepReport) -> dict[str, object]:
    return {"id": found.sweep.id, "name": found.sweep.name, "best": found.best} | {
        "seconds_left": found.seconds_left,
        "runs": found.results,
    }


def _best(found: SweepReport) -> str:
    best = next((each for each in found.results if each.number == found.best), None)
    return f"run {best.run_id}: {formats.number(best.metric)}" if best else ""


def _text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
