"""Runs of the team: list, show, logs, attempts, cancel, delete, export."""

import shutil
import time
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from app import formats, visible
from app.commands.beside_plan import expected_rows, pace_rows
from app.commands.options.acting import connect
from app.commands.options.listing import run_filter
from app.commands.options.shared import STDOUT, Json, Output, taking, write
from app.differences import beside_words
from app.exports.catalog import EXPORTS, export_named
from app.exports.run_document import run_document
from app.naming import attempt_plan, cleared, rule_words
from app.terminal import err, out, print_json, print_table
from backend.bootstrap import Backend
from backend.comparison.runs import as_usual, chosen, parameters
from backend.errors import InvalidInput
from backend.runs.history.listing import RunFilter
from backend.runs.history.records import LogLine
from backend.runs.history.views import ListView
from backend.runs.request.spec import TrainSpec
from backend.runs.run import Run

MODEL = "model"
MOST = 80
"""Characters of a parameter's value."""
RunId = Annotated[int, typer.Argument(help="The run's id, as `stageflow runs` lists it.")]


@taking(run_filter)
def runs(
    wanted: RunFilter,
    view: Annotated[str, typer.Option(help="A kept view, in place of the filters.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=10_000)] = 50,
    as_json: Json = False,
) -> None:
    """List the newest runs.

    Examples:

        stageflow runs

        stageflow runs --state failed --json

        stageflow runs --metric perplexity --most 30

        stageflow runs --view "what failed"
    """
    backend = connect()
    kept = backend.views.named(view).view if view else ListView(wanted)
    if view and wanted != RunFilter():
        raise InvalidInput("a view and filters are given", "Give one of them.")
    page = backend.runs.list(kept.wanted, limit=limit, offset=0, order=kept.order)
    rows = [row(run) for run in page.runs]
    if as_json:
        return print_json(rows)
    if not rows:
        return out.print("No runs yet. Start one: stageflow demo")
    print_table(
        formats.count(page.total, "run"),
        ["id", "name", "kind", "state", "plan", "accuracy", "per minibatch", "created"],
        [
            [
                r["id"],
                r["name"],
                r["kind"],
                r["state"],
                r["plan"] or "",
                formats.percent(r["accuracy"]),
                formats.seconds(r["seconds_per_minibatch"]),
                formats.ago(run.created_at),
            ]
            for r, run in zip(rows, page.runs, strict=True)
        ],
    )
    return None


def row(run: Run) -> dict[str, Any]:
    """One run as plain values for a list."""
    return {
        "id": run.id,
        "name": run.name,
        "kind": run.kind,
        "state": run.state.value,
        "plan": run.spec.plan.label if isinstance(run.spec, TrainSpec) else None,
        "optimizer": ", ".join(rule_words(run.spec.optimizer))
        if isinstance(run.spec, TrainSpec)
        else None,
        "seed": run.spec.seed if isinstance(run.spec, TrainSpec) else None,
        "accuracy": run.summary.accuracy,
        "metrics": run.summary.metrics,
        "seconds_per_minibatch": run.summary.seconds_per_minibatch,
        "created_at": run.created_at.isoformat(),
        "error": run.error.message if run.error else None,
    }


def show(run_id: RunId, as_json: Json = False) -> None:
    """Show one run: its plan, figures, metrics and both timelines.

    Examples:

        stageflow show 42

        stageflow show 42 --json > run42.json
    """
    backend = connect()
    run = backend.runs.get(run_id)
    if as_json:
        return print_json(run_document(backend, run))
    pairs = _figures(run)
    if run.sandbox:
        pairs.append(("sandbox", run.sandbox))
    if run.error and run.error.advice:
        pairs.append(("advice", run.error.advice))
    found = backend.runs.expected(run)
    pairs += expected_rows(run, found)
    pairs += pace_rows(run, found.profile_id, backend.runs.paces(run))
    if told := backend.runs.watched_in_vain(run):
        pairs.append(("watched in vain", told))
    if last := backend.runs.beside_last(run):
        words = [beside_words(figure) for figure in last.figures]
        pairs += [(f"beside run {last.run_id}", said) for said in words]
    if told := cleared(run):
        pairs.append(("cleared", told))
    print_table(f"run {run.id}", ["", ""], pairs)
    if isinstance(run.spec, TrainSpec):
        said = as_usual(run.spec).keys() | chosen(run.spec).keys()
        asked = [(key, v) for key, v in parameters(run.spec).items() if key in said]
        print_table("asked for", ["", ""], [(key, formats.shorten(v, MOST)) for key, v in asked])
    return None


def _figures(run: Run) -> list[tuple[str, Any]]:
    """What its row in a list says, in units that a person reads."""
    values = row(run)
    metrics, accuracy = values.pop("metrics"), values.pop("accuracy")
    pace, created = values.pop("seconds_per_minibatch"), values.pop("created_at")
    values["created"] = f"{formats.ago(run.created_at)} ({created[:16].replace('T', ' ')} UTC)"
    if accuracy is not None:
        values["accuracy"] = formats.percent(accuracy)
    values |= {name: formats.metric_value(name, value) for name, value in metrics.items()}
    if pace is not None:
        values["per minibatch"] = formats.seconds(pace)
    return [(name, value) for name, value in values.items() if value is not None]


def logs(
    run_id: RunId,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the end.")] = False,
) -> None:
    """Print a run's log.

    Examples:

        stageflow logs 42

        stageflow logs 42 -f
    """
    backend = connect()
    after = 0
    while True:
        run = backend.runs.get(run_id)
        lines = backend.runs.logs.list(run_id, after=after)
        for line in lines:
            out.print(_log_text(line), highlight=False, soft_wrap=True)
            after = line.seq
        if not lines and (not follow or run.state.is_final):
            return
        if not lines:
            time.sleep(0.5)


def _log_text(line: LogLine) -> str:
    source = f"rank {line.rank}" if line.rank is not None else "agent"
    return f"{datetime.fromtimestamp(line.time):%H:%M:%S} {source} {visible.line(line.text)}"


def cancel(run_id: RunId) -> None:
    """Cancel a queued or running run; all its processes end within seconds.

    Example:

        stageflow cancel 42
    """
    run = connect().runs.cancel(run_id)
    err.print(
        f"run {run.id} is {run.state.value}"
        + ("; its processes are being ended" if not run.state.is_final else "")
    )


def delete(
    run_id: RunId,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete an ended run for good, with its log, metrics, timelines and files.

    Examples:

        stageflow delete 42

        stageflow delete 42 --yes
    """
    runs = connect().runs
    run = runs.get(run_id)
    if not yes and run.state.is_final:
        typer.confirm(f"Delete run {run.id} ({run.name}) and all that it recorded?", abort=True)
    err.print(f"run {runs.delete(run_id).id} is deleted")


def export(
    run_id: RunId,
    output: Output = STDOUT,
    format: Annotated[
        str, typer.Option("--format", "-f", help=f"One of: {', '.join(EXPORTS)}, or {MODEL}.")
    ] = "json",
) -> None:
    """Write a run as a file: everything as JSON, or its metrics, timelines or log; or its trained
    model into a folder, as from_pretrained opens it.

    Examples:

        stageflow export 42 -o run42.json

        stageflow export 42 --format trace -o run42-trace.json

        stageflow export 42 --format csv > metrics.csv

        stageflow export 42 --format model -o trained
    """
    if format == MODEL:
        return _write_model(connect(), run_id, output)
    chosen = export_named(format)
    backend = connect()
    return write(output, chosen.write(backend, backend.runs.get(run_id)))


def _write_model(backend: Backend, run_id: int, folder: Path) -> None:
    """Copy the trained model and what lies beside it. Raises `NotFound` where there is none."""
    if folder == STDOUT:
        raise InvalidInput("a model is several files", "Give a folder: -o trained")
    backend.runs.get(run_id)  # only who sees the run gets its files
    backend.runs.artifacts.trained_model(run_id)
    folder.mkdir(parents=True, exist_ok=True)
    for kept in backend.runs.artifacts.list(run_id):
        if Path(kept.name).name == kept.name:
            shutil.copyfile(kept.path, folder / kept.name)
    err.print(f"wrote {folder}")


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
        f"run {run_id}: {formats.count(len(found), 'attempt')}",
        ["attempt", "node", "started", "from update", "plan", "outcome", "reason"],
        [
            [
                one.number,
                one.node,
                formats.ago(one.started_at),
                "" if one.step is None else one.step,
                attempt_plan(one),
                one.outcome or "goes on",
                one.error.message if one.error else "",
            ]
            for one in found
        ],
    )
    return None
