"""`stageflow program`: what every rank does, taken away in a form, and read from a file."""

from pathlib import Path
from typing import Annotated

import typer

from app import formats
from app.commands.options.acting import connect
from app.commands.options.shared import STDOUT, Json, Output, write
from app.commands.planning import Batch, ClusterFile, Devices, find_cluster, find_profile
from app.commands.simulate import figures, rows
from app.terminal import out, print_json, print_table
from backend.errors import InvalidInput
from backend.pipeline.bubbles import bubble
from backend.pipeline.exchange.forms import form_named, read_any
from backend.pipeline.exchange.torch_csv import write_csv
from backend.pipeline.program import Program
from backend.pipeline.simulate import simulate
from backend.pipeline.verify import verify
from backend.prediction.programs import Imported, examined, exported
from backend.prediction.synthesised import Synthesised, synthesised
from backend.prediction.trainers.forms import PLAN_FORMS, TRAINERS, plan_form
from backend.prediction.uniform import UniformDurations, simulate_uniform, uniform_shape

app = typer.Typer(help="Programs: what every rank does, in order.", no_args_is_help=True)

Form = Annotated[str, typer.Option("--format", "-f", help=f"One of: {', '.join(PLAN_FORMS)}.")]
Forward = Annotated[float, typer.Option(min=0, help="Seconds of a forward of one pipeline rank.")]
Backward = Annotated[float, typer.Option(min=0, help="Seconds of a backward.")]


@app.command("export")
def export_program(
    plan: Annotated[int | None, typer.Option(help="Id of a kept plan, with its costs.")] = None,
    schedule: Annotated[str, typer.Option(help="Without a plan: of the catalog.")] = "1f1b-flush",
    pipeline_size: Annotated[
        int,
        typer.Option(
            "--pipeline-size", "--positions", min=1, help="Without a plan: pipeline ranks."
        ),
    ] = 4,
    num_microbatches: Annotated[
        int | None,
        typer.Option(
            "--microbatches", min=1, help="Of the segment (default: as the plan needs, or 8)."
        ),
    ] = None,
    chunks: Annotated[
        int,
        typer.Option(
            min=0,
            help="Without a plan: stages per pipeline rank; 0: as the schedule is made for.",
        ),
    ] = 0,
    format: Form = "text",
    output: Output = STDOUT,
) -> None:
    """Write the program of a plan, or of a schedule on equal stages, as a file; or a plan as other
    trainers read it (torch, torchtitan, megatron, deepspeed).

    Examples:

        stageflow program export --schedule zb-h1 --pipeline-size 4 --microbatches 8

        stageflow program export --schedule gpipe --format csv -o gpipe.csv

        stageflow program export --plan 1 --format trace -o plan1.json

        stageflow program export --plan 1 --format megatron -o plan1.sh
    """
    if plan is None:
        if format in TRAINERS:
            raise InvalidInput(
                f"{format} is told which layers each stage has, and a schedule has none",
                "Give a kept plan: --plan 1.",
            )
        form = form_named(format)
        shape = uniform_shape(schedule, pipeline_size, num_microbatches or 8, chunks)
        durations = UniformDurations(1, 2, chunks=shape.chunks)
        data = form.write(*simulate_uniform(schedule, shape, durations))
    else:
        backend = connect()
        kept = backend.plans.get(plan)
        profile = backend.profiles.get(kept.profile_id).profile
        data = exported(profile, kept.cluster, kept.plan, plan_form(format), num_microbatches or 0)
    write(output, data)


@app.command("import")
def import_program(
    file: Annotated[
        Path,
        typer.Argument(
            help="A program as text, JSON, torch's CSV, an order of Megatron-LM or of Sea AI Lab's "
            "zero bubble, or a trace."
        ),
    ],
    profile: Annotated[
        str, typer.Option("--profile", help="Costs: id of a profile, or a file. Else equal stages.")
    ] = "",
    cluster: ClusterFile = "",
    devices: Devices = 2,
    batch: Batch = None,
    forward: Forward = 1.0,
    backward: Backward = 2.0,
    as_json: Json = False,
) -> None:
    """Verify a program from a file, and run it on a clock.

    Its faults are printed, a sentence each, and the exit code is 1; without faults it is
    simulated: with the costs of a profile's layers, or on equal stages.

    Examples:

        stageflow program import gpipe.csv

        stageflow program import order.txt --profile 1 --devices 4 --json
    """
    program = read_any(file.read_bytes())
    if profile:
        layers, _ = find_profile(profile, batch)
        found = examined(program, layers, find_cluster(cluster, devices))
    else:
        found = _uniform(program, UniformDurations(forward, backward, chunks=program.shape.chunks))
    told = _told(found)
    if as_json:
        print_json(told)
    else:
        _print(found)
    if found.faults:
        raise typer.Exit(1)


@app.command("synthesise")
def synthesise_program(
    plan: Annotated[int, typer.Option(help="Id of a kept plan, with its costs.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the order as torch's CSV.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Find an order of actions for a plan's own seconds, messages and memory, and print what it
    gains over the fastest schedule of the catalog that holds no more forwards on any device.

    The plan is one pipeline under a schedule with a flush, straight or with two stages on each
    device as a V.

    Examples:

        stageflow program synthesise --plan 1

        stageflow program synthesise --plan 1 -o order.csv
    """
    backend = connect()
    kept = backend.plans.get(plan)
    profile = backend.profiles.get(kept.profile_id).profile
    found = synthesised(profile, kept.cluster, kept.plan)
    if output:
        write(output, write_csv(found.found.program).encode())
    if as_json:
        print_json(_gains(found))
        return
    one, other = found.found, found.best
    idle, held = map(formats.seconds, found.idle_saved), map(str, found.most_held)
    told = [
        ("order", f"{formats.seconds(one.seconds)} a batch ({one.name})"),
        ("fastest of the catalog", f"{formats.seconds(other.seconds)} a batch ({other.name})"),
        ("as fast", formats.times(found.gain)),
        ("less waiting per device", ", ".join(idle)),
        ("forwards held per device", ", ".join(held)),
    ]
    print_table("", ["", ""], told)


def _gains(found: Synthesised) -> dict[str, object]:
    return {
        "schedule": found.found.name,
        "seconds": found.found.seconds,
        "best_of_catalog": found.best.name,
        "best_seconds": found.best.seconds,
        "times_as_fast": found.gain,
        "idle_seconds_saved": found.idle_saved,
        "most_held": found.most_held,
    }


def _uniform(program: Program, durations: UniformDurations) -> Imported:
    if faults := verify(program):
        return Imported(program, faults)
    return Imported(program, (), simulate(program, durations))


def _told(found: Imported) -> dict[str, object]:
    faults = [
        {"rank": f.rank, "index": f.index, "rule": f.rule.value, "text": f.text}
        for f in found.faults
    ]
    told: dict[str, object] = {"schedule": found.program.schedule, "faults": faults}
    if found.timeline is not None:
        told |= figures(found.program, found.timeline, bubble(found.timeline))
    return told | ({"prediction": found.prediction} if found.prediction else {})


def _print(found: Imported) -> None:
    for fault in found.faults:
        out.print(str(fault), highlight=False)
    if found.timeline is None:
        return
    shown = rows(figures(found.program, found.timeline, bubble(found.timeline)))
    if found.prediction is not None:
        shown.append(("samples/s", formats.rate(found.prediction.samples_per_second)))
    print_table("", ["", ""], shown)
