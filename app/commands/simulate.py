"""A schedule on a clock without a profile: equal stages, times given by hand."""

from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import typer

from app.commands.options.shared import Json
from app.terminal import out, print_json, print_table
from backend.errors import InvalidInput
from backend.pipeline.bubbles import idle_causes, total
from backend.pipeline.exchange.chrome_trace import write_trace
from backend.pipeline.held import in_flight, live_versions, most
from backend.pipeline.program import Program
from backend.pipeline.timeline import Timeline
from backend.pipeline.verify import check
from backend.prediction.uniform import (
    UniformDurations,
    bubble_rate,
    cost_seconds,
    simulate_uniform,
    uniform_shape,
)


def simulate(
    pipeline_size: Annotated[
        int, typer.Option("--pipeline-size", "--positions", min=1, help="Pipeline ranks.")
    ],
    num_microbatches: Annotated[int, typer.Option("--microbatches", min=1)],
    forward: Annotated[float, typer.Option(min=0, help="Seconds of a forward.")],
    backward: Annotated[float, typer.Option(min=0, help="Seconds of the input's gradient.")],
    schedule: Annotated[str, typer.Option(help="A schedule of the catalog.")] = "1f1b-flush",
    backward_weight: Annotated[
        float, typer.Option(min=0, help="Seconds of the weights' gradient.")
    ] = 0.0,
    transfer: Annotated[float, typer.Option(min=0, help="Seconds of a hop.")] = 0.0,
    chunks: Annotated[
        int,
        typer.Option(
            min=0,
            help="Stages per pipeline rank, which share its seconds evenly; 0: as many as the "
            "schedule is made for.",
        ),
    ] = 0,
    advance: Annotated[int, typer.Option(min=0, help="How far afp runs ahead of 1F1B.")] = 1,
    run_ahead: Annotated[
        int,
        typer.Option(
            help="Further microbatches in flight per hop of a schedule that never drains."
        ),
    ] = 0,
    trace: Annotated[
        Path | None, typer.Option(help="Write the timeline as a Chrome trace for Perfetto.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a schedule on a clock: equal stages, times given by hand.

    Examples:

        stageflow simulate --pipeline-size 4 --microbatches 8 --forward 1 --backward 2

        stageflow simulate --schedule zb-h1 --pipeline-size 8 --microbatches 24 --forward 0.018
            --backward 0.018 --backward-weight 0.009 --transfer 0.0006 --json --trace zb.json
    """
    times = {"forward": forward, "backward": backward}
    times |= {"backward-weight": backward_weight, "transfer": transfer}
    for name, seconds in times.items():
        if not isfinite(seconds):
            raise InvalidInput(
                f"--{name} {seconds} is not a number of seconds", "For example: 0.018"
            )
    shape = uniform_shape(schedule, pipeline_size, num_microbatches, chunks, advance, run_ahead)
    durations = UniformDurations(forward, backward, backward_weight, transfer, shape.chunks)
    program, timeline = simulate_uniform(schedule, shape, durations)
    check(program)
    rate = bubble_rate(timeline, shape.num_microbatches * durations.microbatch_seconds)
    told = figures(program, timeline, rate)
    if trace:
        trace.write_text(write_trace(timeline, shape))
    if as_json:
        return print_json(told)
    print_table("", ["", ""], rows(told))
    if trace:
        out.print(f"timeline written to {trace}: open it at https://ui.perfetto.dev")
    return None


def figures(program: Program, timeline: Timeline, bubble_rate: float) -> dict[str, Any]:
    """What `simulate` says of a program; `bubble_rate` is a share of the makespan."""
    shape = program.shape
    causes = idle_causes(program, timeline)
    return {
        "schedule": program.schedule,
        "positions": shape.pipeline_size,
        "microbatches": shape.num_microbatches,
        "batch": shape.batch,
        "chunks": shape.chunks,
        "advance": shape.advance,
        "run_ahead": shape.run_ahead,
        "makespan": cost_seconds(timeline),
        "bubble_rate": bubble_rate,
        "causes": {str(idle): seconds for idle, seconds in total(causes).items()},
        "causes_per_rank": [{str(idle): one[idle] for idle in one} for one in causes],
        "in_flight": most(program, in_flight(program.rows)),
        "versions": [
            max(versions)
            for versions in zip(
                *(most(program, live_versions(program, chunk)) for chunk in range(shape.chunks)),
                strict=True,
            )
        ],
    }


def rows(told: dict[str, Any]) -> list[tuple[str, str]]:
    """The same as a table."""
    shown = [(name, str(value)) for name, value in told.items() if "causes" not in name]
    idle = [(f"idle: {cause}", f"{value:g}") for cause, value in told["causes"].items()]
    return shown + idle
