"""Jobs for a node agent: profile a definition, train it by a plan, resume a training."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from app.commands.by_hand import ByHandOption, print_command
from app.commands.follow import follow, node_agent
from app.commands.history import RunId, show
from app.commands.options.acting import connect
from app.commands.options.data import data_spec
from app.commands.options.optimizer import optimizer_spec
from app.commands.options.place import pool_spec
from app.commands.options.shared import AloneOption, Detach, Json, taking
from app.commands.options.sweep import Varying, varying
from app.commands.options.training import (
    EmulateOption,
    EvaluateOption,
    FurtherRateOption,
    LocalHeadOption,
    ReplanOption,
    RunStateOption,
    ShardOption,
    TargetLossOption,
    TargetOption,
    TrackOption,
    checkpoint_spec,
    stop_spec,
)
from app.commands.options.weights import PartialOption, WeightsOption, beginning
from app.commands.sweeps import started
from app.exports.layer_rows import LAYER_HEAD, layer_row
from app.naming import fallback_words, start_words
from app.terminal import err, out, print_json, print_table, warn
from backend.bootstrap import Backend
from backend.codec import from_plain
from backend.definitions.parameters import assignments, parsed
from backend.profiles.document import write_profile
from backend.runs.profiles import StoredProfile
from backend.runs.request.as_planned import as_planned
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import (
    CheckpointSpec,
    DataSpec,
    PoolSpec,
    ProfileSpec,
    RunSpec,
    StopSpec,
    TrainSpec,
)
from backend.runs.request.tracking import asked
from backend.runs.run import Run

Model = Annotated[
    str,
    typer.Argument(
        help="A Python file, a Hugging Face config.json, a .pt2 program, a zoo name "
        "(vgg_digits), or NAME or NAME@VERSION."
    ),
]


def submit(backend: Backend, spec: RunSpec, name: str) -> Run:
    """Store and queue a run; a queue that does not answer is a warning, not a loss."""
    if words := start_words(backend.pools.list(), spec):
        err.print(words, highlight=False)
    submitted = backend.runs.submit(spec, name)
    if problem := backend.runs.why_waiting(submitted):
        warn(problem)
    if submitted.fallbacks:
        err.print(fallback_words(submitted.fallbacks))
    return submitted


@taking(pool_spec)
def profile(
    pool: PoolSpec | None,
    model: Model,
    microbatches: Annotated[
        list[int] | None,
        typer.Option("--batch", min=1, help="Samples per microbatch; again for a further profile."),
    ] = None,
    repetitions: Annotated[int, typer.Option(min=1, help="Timings per layer.")] = 20,
    parameters: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter of the model: NAME=VALUE.")
    ] = None,
    layers: Annotated[str, typer.Option(help="fine, or blocks: a block is one layer.")] = "",
    precision: Annotated[Literal["float32", "bfloat16"], typer.Option()] = "float32",
    peak: Annotated[
        str, typer.Option(help="Run nothing: times of this device's roofline (h100, a100, ...).")
    ] = "",
    by_parts: Annotated[
        bool, typer.Option("--by-parts", help="Make and time one layer after the other.")
    ] = False,
    alone: AloneOption = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Measure again what has been measured.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the profile as JSON.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Time and size every layer of a model on a node agent.

    Examples:

        stageflow profile vgg_digits --batch 16

        stageflow profile my_model.py --batch 32 -o my_profile.json

        stageflow profile gpt2 --batch 4 --batch 8 --set depth=6 --layers blocks

        stageflow profile llama/config.json --batch 4 --set length=2048 --peak h100
    """
    backend = connect()
    definition = backend.definitions.resolve(model)
    microbatch, *further = microbatches or [16]
    known = backend.definitions.describe(definition.id).parameters
    spec: ProfileSpec = from_plain(
        ProfileSpec,
        {
            "definition_id": definition.id,
            "microbatch": microbatch,
            "repetitions": repetitions,
            "parameters": parsed(known, assignments(parameters or [])),
            "granularity": layers,
            "precision": precision,
            "further": further,
            "peak": peak,
            "by_parts": by_parts,
            "whole_nodes": alone,
        },
    )
    spec = replace(spec, pool=pool)
    stored = _profiled(backend, spec, definition.name, fresh)
    if output:
        output.write_bytes(write_profile(stored.profile))
        err.print(f"wrote {output}")
    if as_json:
        return print_json({"id": stored.id, "run_id": stored.run_id, "profile": stored.profile})
    print_table(
        f"profile {stored.id}: {stored.profile.name}, microbatch {microbatch}",
        LAYER_HEAD,
        map(layer_row, stored.profile.layers),
    )
    for note in stored.profile.notes:
        out.print(f"note: {note}", highlight=False)
    return None


def _profiled(backend: Backend, spec: ProfileSpec, name: str, fresh: bool) -> StoredProfile:
    """The profile that is kept of this very question, else one that a node agent makes."""
    with node_agent(backend, spec.pool):
        kept = () if fresh else backend.profiles.measured(spec, backend.nodes.list())
        if kept:
            err.print(f"profile {kept[-1].id} exists already; --fresh measures again")
            return kept[-1]
        run = follow(backend, submit(backend, spec, f"profile {name}"))
    assert run.summary.profile_id is not None
    return backend.profiles.get(run.summary.profile_id)


@taking(data_spec, optimizer_spec, checkpoint_spec, stop_spec, pool_spec, varying)
def run(
    data: DataSpec,
    optimizer: Callable[[OptimizerSpec], OptimizerSpec],
    checkpoints: CheckpointSpec,
    stop: StopSpec,
    pool: PoolSpec | None,
    sweep: Varying,
    plan_id: Annotated[
        int, typer.Option("--plan", help="Id of a saved plan (stageflow plan --save).")
    ],
    epochs: Annotated[int, typer.Option(min=1)] = 10,
    target: TargetOption = None,
    target_loss: TargetLossOption = None,
    evaluate: EvaluateOption = 0,
    precision: Annotated[
        Literal["float32", "bfloat16", "float16"] | None,
        typer.Option(help="Of the compute (default: float32, or what goes with the state)."),
    ] = None,
    state_precision: RunStateOption = None,
    shard_state: ShardOption = None,
    local_head: LocalHeadOption = "",
    seed: int = 0,
    weights: WeightsOption = "",
    weights_partial: PartialOption = False,
    nodes: Annotated[
        str, typer.Option(help="Run on these at once, as NODE,NODE: see `stageflow doctor`.")
    ] = "",
    emulate: EmulateOption = 0.0,
    alone: AloneOption = False,
    replan: ReplanOption = True,
    track: TrackOption = "",
    name: str = "",
    by_hand: ByHandOption = None,
    detach: Detach = False,
    as_json: Json = False,
) -> None:
    """Train a model by a saved plan, on a node agent.

    Examples:

        stageflow run --plan 1 --epochs 10 --target 0.97 --lr 0.02 --detach

        stageflow run --plan 2 --emulate 0.5 --epochs 1

        stageflow run --plan 3 --nodes gpu-1,gpu-2

        stageflow run --plan 3 --pool gpu --machines 2

        stageflow run --plan 1 --precision bfloat16 --state-precision bfloat16-masters

        stageflow run --plan 1 --data csv:plants/leaves.csv --targets species --last keep

        stageflow run --plan 4 --weights run:12

        stageflow run --plan 1 --vary lr=0.1,0.01 --vary schedule=pipedream,gpipe

        stageflow run --plan 1 --vary lr=log:1e-4:0.1 --draws 20 --stop-behind
    """
    backend = connect()
    stored = backend.plans.get(plan_id)
    profile, plan = backend.profiles.get(stored.profile_id), stored.prediction.plan
    spec = TrainSpec(
        definition_id=profile.definition_id,
        plan=plan if shard_state is None else replace(plan, shard_state=shard_state),
        plan_id=stored.id,
        data=data,
        epochs=epochs,
        target_accuracy=target,
        target_loss=target_loss,
        evaluate=evaluate,
        seed=seed,
        nodes=tuple(filter(None, nodes.split(","))),
        emulate=emulate,
        whole_nodes=alone,
        replan=replan,
        pool=pool,
        trackers=asked(track),
        checkpoints=checkpoints,
        stop=stop,
        weights_partial=weights_partial,
        local_head=local_head,
    )
    planned = as_planned(spec, stored.prediction)
    spec = replace(
        planned,
        optimizer=optimizer(planned.optimizer),
        state_precision=state_precision or planned.state_precision,
        precision=precision or planned.precision,
    )
    spec = beginning(backend, spec, weights)
    if by_hand is not None:
        return print_command(backend, spec, by_hand)
    if sweep.axes:
        return started(backend, sweep.spec(spec), name, as_json)
    definition = backend.definitions.get(profile.definition_id)
    if detach:
        queued = submit(backend, spec, name or definition.name)
        return print_json({"id": queued.id}) if as_json else out.print(f"run {queued.id} is queued")
    with node_agent(backend, pool):
        final = follow(backend, submit(backend, spec, name or definition.name))
    return show(final.id, as_json)


def resume(
    run_id: RunId,
    plan_id: Annotated[
        int | None, typer.Option("--plan", help="Id of a saved plan to go on with.")
    ] = None,
    epochs: Annotated[int, typer.Option(min=0, help="Epochs in all; 0 = as many as before.")] = 0,
    best: Annotated[
        bool, typer.Option("--best", help="From the checkpoint of the best evaluation.")
    ] = False,
    rate: FurtherRateOption = None,
    detach: Detach = False,
    as_json: Json = False,
) -> None:
    """Go on with an ended training from its newest checkpoint (or its best), as a new run.

    Examples:

        stageflow resume 42

        stageflow resume 42 --plan 7 --epochs 20 --lr 1e-4
    """
    backend = connect()
    resumed = backend.runs.resume(run_id, plan_id, epochs, best=best, learning_rate=rate)
    if detach:
        return (
            print_json({"id": resumed.id}) if as_json else out.print(f"run {resumed.id} is queued")
        )
    with node_agent(backend, resumed.spec.pool):
        final = follow(backend, resumed)
    return show(final.id, as_json)
