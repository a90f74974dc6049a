"""`stageflow plans` and `stageflow profiles`: what is kept of them, and what is not needed."""

from pathlib import Path
from typing import Annotated

import typer

from app import formats
from app.commands.options.acting import connect
from app.commands.options.labels import label_options
from app.commands.options.shared import Json, taking
from app.differences import STAGE_COLUMNS, fact_row, moved_text, stage_row
from app.naming import label_words, plan_name
from app.terminal import err, out, print_json, print_table
from backend.runs.history.labels import Change

plans = typer.Typer(help="The kept plans.", no_args_is_help=True)
profiles = typer.Typer(help="The kept profiles.", no_args_is_help=True)

PlanId = Annotated[int, typer.Argument(help="Number of a kept plan.", show_default=False)]
ProfileId = Annotated[int, typer.Argument(help="Number of a profile.", show_default=False)]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@plans.command("list")
def list_plans(as_json: Json = False) -> None:
    """List the kept plans, the newest first."""
    backend = connect()
    found = backend.plans.list()
    if as_json:
        return print_json(list(found))
    models = backend.profiles.models({kept.profile_id for kept in found})
    return print_table(
        formats.count(len(found), "plan") if found else "No plan yet: stageflow plan --save",
        ["plan", "name", "model", "profile", "partition", "samples", "devices", "tags", "saved"],
        [
            [
                kept.id,
                kept.name,
                models[kept.profile_id],
                kept.profile_id,
                plan_name(kept.plan),
                formats.rate(kept.prediction.samples_per_second),
                kept.cluster.num_devices,
                ", ".join(kept.tags),
                formats.ago(kept.created_at),
            ]
            for kept in found
        ],
    )


@plans.command("diff")
def diff_plans(
    plan_id: PlanId,
    other_id: Annotated[int, typer.Argument(help="Number of another one.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Tell what differs between two kept plans, and nothing that is the same."""
    found = connect().plans.differences(plan_id, other_id)
    if as_json:
        return print_json(found)
    if not (found.facts or found.moved or found.stages):
        return out.print(f"Plans {plan_id} and {other_id} are the same.", highlight=False)
    pairs = zip(found.names, (plan_id, other_id), strict=True)
    names = [f"{name} ({number})" for name, number in pairs]
    print_table("", ["", *names, "second beside first"], map(fact_row, found.facts))
    for moved in found.moved:
        out.print(moved_text(moved), highlight=False)
    if found.stages:
        heads = [head for head, _ in STAGE_COLUMNS]
        print_table("stages that differ", ["stage", *heads], map(stage_row, found.stages))
    return out.print(f"The same in both: {', '.join(found.alike)}.", highlight=False)


@plans.command("label")
@taking(label_options)
def label_plan(change: Change, plan_id: PlanId) -> None:
    """Change the name, note or tags of a kept plan."""
    out.print(label_words("plan", connect().plans.label(plan_id, change)), markup=False)


@plans.command("delete")
def delete_plan(plan_id: PlanId, yes: Yes = False) -> None:
    """Delete a kept plan by which no run was launched."""
    service = connect().plans
    kept = service.get(plan_id)
    if not yes:
        typer.confirm(f"Delete plan {kept.id} ({kept.name})?", abort=True)
    err.print(f"plan {service.delete(plan_id).id} is deleted")


@profiles.command("list")
def list_profiles(as_json: Json = False) -> None:
    """List the kept profiles, the newest first."""
    found = connect().profiles.list()
    if as_json:
        return print_json(list(found))
    return print_table(
        formats.count(len(found), "profile")
        if found
        else "No profile yet: stageflow profile MODEL",
        ["profile", "name", "model", "microbatch", "device", "layers", "tags", "created"],
        [
            [
                kept.id,
                kept.name,
                kept.profile.name,
                kept.profile.microbatch,
                kept.profile.device,
                len(kept.profile.layers),
                ", ".join(kept.tags),
                formats.ago(kept.created_at),
            ]
            for kept in found
        ],
    )


@profiles.command("import")
def import_profile(
    file: Annotated[
        Path,
        typer.Argument(help="JSON, a trace of torch.profiler, or graph.txt.", show_default=False),
    ],
    model: Annotated[str, typer.Option(help="Its model: stored, of the zoo, or a file.")],
    batch: Annotated[
        int | None, typer.Option(min=1, help="Samples per microbatch; a graph.txt needs it.")
    ] = None,
) -> None:
    """Keep a profile that was measured elsewhere.

    Examples:

        stageflow profiles import vgg16/graph.txt --model vgg16 --batch 128
    """
    backend, data = connect(), file.read_bytes()
    definition_id = backend.definitions.resolve(model).id
    err.print(f"profile {backend.profiles.bring(file.name, data, definition_id, batch).id} is kept")


@profiles.command("label")
@taking(label_options)
def label_profile(change: Change, profile_id: ProfileId) -> None:
    """Change the name, note or tags of a profile."""
    out.print(label_words("profile", connect().profiles.label(profile_id, change)), markup=False)


@profiles.command("delete")
def delete_profile(profile_id: ProfileId, yes: Yes = False) -> None:
    """Delete a profile from which no plan was made. The run that measured it stays."""
    service = connect().profiles
    kept = service.get(profile_id)
    if not yes:
        typer.confirm(f"Delete profile {kept.id} ({kept.profile.name})?", abort=True)
    err.print(f"profile {service.delete(profile_id).id} is deleted")
