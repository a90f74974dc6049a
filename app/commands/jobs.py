"""Jobs for a node agent: profile a definition, train it by a plan."""

from pathlib import Path
from typing import Annotated

import typer

from app import formats
from app.commands.follow import follow, node_agent
from app.commands.history import show
from app.commands.output import err, out, print_json, print_table, warn
from backend.bootstrap import Backend, connect
from backend.codec import from_plain
from backend.profiles.document import write_profile
from backend.runs.run import Run
from backend.runs.spec import DataSpec, OptimizerSpec, ProfileSpec, RunSpec, TrainSpec

Model = Annotated[
    str, typer.Argument(help="A Python file, a zoo name (vgg_digits), or NAME or NAME@VERSION.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def submit(backend: Backend, spec: RunSpec, name: str) -> Run:
    """Store and queue a run; a queue that does not answer is a warning, not a loss."""
    submitted = backend.runs.submit(spec, name)
    if problem := backend.runs.why_waiting(submitted):
        warn(problem)
    return submitted


def profile(
    model: Model,
    microbatch: Annotated[int, typer.Option("--batch", min=1, help="Samples per microbatch.")] = 16,
    repetitions: Annotated[int, typer.Option(min=1, help="Timings per layer.")] = 20,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the profile as JSON.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Time and size every layer of a model on a node agent.

    Examples:

        stageflow profile vgg_digits --batch 16

        stageflow profile my_model.py --batch 32 -o my_profile.json
    """
    backend = connect()
    definition = backend.definitions.resolve(model)
    spec = ProfileSpec(definition.id, microbatch, repetitions)
    with node_agent(backend):
        run = follow(backend, submit(backend, spec, f"profile {definition.name}"))
    assert run.summary.profile_id is not None
    stored = backend.profiles.get(run.summary.profile_id)
    if output:
        output.write_bytes(write_profile(stored.profile))
        err.print(f"wrote {output}")
    if as_json:
        return print_json({"id": stored.id, "run_id": run.id, "profile": stored.profile})
    print_table(
        f"profile {stored.id}: {stored.profile.name}, microbatch {microbatch}",
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
            for layer in stored.profile.layers
        ],
    )
    for note in stored.profile.notes:
        out.print(f"note: {note}", highlight=False)
    return None


def run(
    plan_id: Annotated[
        int, typer.Option("--plan", help="Id of a saved plan (stageflow plan --save).")
    ],
    epochs: Annotated[int, typer.Option(min=1)] = 10,
    target: Annotated[
        float | None, typer.Option(min=0, max=1, help="Stop at this held-out accuracy.")
    ] = None,
    data: Annotated[str, typer.Option(help="digits, synthetic or definition.")] = "",
    optimizer: Annotated[str, typer.Option(help="sgd, momentum or adam.")] = "momentum",
    learning_rate: Annotated[float, typer.Option("--lr")] = 0.01,
    seed: int = 0,
    name: str = "",
    detach: Annotated[bool, typer.Option("--detach", help="Queue it and return.")] = False,
    as_json: Json = False,
) -> None:
    """Train a model by a saved plan, on a node agent.

    Examples:

        stageflow run --plan 1 --epochs 10 --target 0.97

        stageflow run --plan 1 --lr 0.02 --detach
    """
    backend = connect()
    stored = backend.plans.get(plan_id)
    profile = backend.profiles.get(stored.profile_id)
    spec = TrainSpec(
        definition_id=profile.definition_id,
        plan=stored.prediction.plan,
        plan_id=stored.id,
        data=DataSpec(name=data),
        optimizer=optimizer_spec(optimizer, learning_rate),
        epochs=epochs,
        target_accuracy=target,
        seed=seed,
    )
    definition = backend.definitions.get(profile.definition_id)
    if detach:
        queued = submit(backend, spec, name or definition.name)
        return print_json({"id": queued.id}) if as_json else out.print(f"run {queued.id} is queued")
    with node_agent(backend):
        final = follow(backend, submit(backend, spec, name or definition.name))
    return show(final.id, as_json)


def optimizer_spec(name: str, learning_rate: float) -> OptimizerSpec:
    """Raises `InvalidInput` for an unknown optimizer."""
    chosen: OptimizerSpec = from_plain(
        OptimizerSpec, {"name": name, "learning_rate": learning_rate}
    )
    return chosen
