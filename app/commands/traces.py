"""`stageflow trace`: profiles and comparisons from traces of torch.profiler."""

from pathlib import Path
from typing import Annotated

import typer

from app import formats
from app.commands.options.acting import connect
from app.commands.options.shared import Json
from app.naming import traced_words
from app.terminal import err, out, print_json, print_table
from backend.comparison.traced_runs import traced_run
from backend.profiles.document import write_profile
from backend.profiles.traces.trace_file import read_trace_path
from backend.profiles.traces.traced_profile import traced_profile

app = typer.Typer(help="Traces of torch.profiler, of trainings elsewhere.", no_args_is_help=True)

TraceFile = Annotated[Path, typer.Argument(help="A trace (.json, .json.gz).", show_default=False)]


@app.command("profile")
def profile_trace(
    trace: TraceFile,
    batch: Annotated[
        int | None, typer.Option(min=1, help="Samples of a microbatch (default: by the shapes).")
    ] = None,
    model: Annotated[
        str, typer.Option(help="Keep it as a profile of this model, by which a plan can be kept.")
    ] = "",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the profile as JSON.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a profile from a trace of one's own training steps.

    Examples:

        stageflow trace profile step.json.gz --batch 16 -o profile.json

        stageflow trace profile step.json --model my_model.py
    """
    profile = traced_profile(read_trace_path(trace), batch)
    stored = None
    if model:
        backend = connect()
        stored = backend.profiles.add(profile, backend.definitions.resolve(model).id)
        err.print(f"profile {stored.id} is kept")
    if output:
        output.write_bytes(write_profile(profile))
        err.print(f"wrote {output}")
    if as_json:
        return print_json({"id": stored.id if stored else None, "profile": profile})
    print_table(
        f"{profile.name}, microbatch {profile.microbatch}",
        ["layer", "kind", "forward", "backward", "output", "parameters"],
        [
            [
                layer.name,
                layer.kind,
                formats.seconds(layer.forward),
                formats.seconds(layer.backward),
                formats.size(layer.output_bytes),
                formats.size(layer.parameter_bytes),
            ]
            for layer in profile.layers
        ],
    )
    for note in profile.notes:
        out.print(f"note: {note}", highlight=False)
    return None


@app.command("compare")
def compare_traces(
    traces: Annotated[
        list[Path], typer.Argument(help="A trace for each rank, rank 0 first.", show_default=False)
    ],
    plan: Annotated[int, typer.Option(help="Id of the kept plan that the run went by.")],
    as_json: Json = False,
) -> None:
    """Lay a run elsewhere beside the prediction of a plan, by one trace for each rank.

    Examples:

        stageflow trace compare --plan 3 rank0.json.gz rank1.json.gz
    """
    backend = connect()
    kept = backend.plans.get(plan)
    profile = backend.profiles.get(kept.profile_id).profile
    found, _, _ = traced_run([*map(read_trace_path, traces)], profile, kept.cluster, kept.plan)
    if as_json:
        return print_json(found)
    print_table(
        f"plan {kept.id}, {kept.name}: {traced_words(found)}",
        ["rank", "computed", "predicted", "", "waiting", "predicted"],
        [
            [
                rank.rank,
                formats.seconds(rank.computed),
                formats.seconds(rank.predicted),
                formats.change(rank.computed, rank.predicted) + (" slow" if rank.is_slow else ""),
                formats.percent(rank.waiting),
                formats.percent(rank.predicted_waiting),
            ]
            for rank in found.ranks
        ],
    )
    return None
