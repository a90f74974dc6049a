"""`stageflow plans` and `stageflow profiles`: what is kept of them, and what is not needed."""

from typing import Annotated

import typer

from app import formats
from app.commands.options.acting import connect
from app.commands.options.shared import Json
from app.differences import STAGE_COLUMNS, fact_row, moved_text, stage_row
from app.naming import plan_name
from app.terminal import err, out, print_json, print_table

plans = typer.Typer(help="The kept plans.", no_args_is_help=True)
profiles = typer.Typer(help="The kept profiles.", no_args_is_help=True)

PlanId = Annotated[int, typer.Argument(help="Number of a kept plan.", show_default=False)]
ProfileId = Annotated[int, typer.Argument(help="Number of a profile.", show_default=False)]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@plans.command("list")
def list_plans(as_json: Json = False) -> None:
    """List the kept plans, the newest first."""
    found = connect().plans.list()
    if as_json:
        return print_json(list(found))
    return print_table(
        formats.count(len(found), "plan") if found else "No plan yet: stageflow plan --save",
        ["plan", "name", "profile", "partition", "schedule", "samples", "devices", "saved"],
        [
            [
                kept.id,
                kept.name,
                kept.profile_id,
                plan_name(kept.plan),
                kept.plan.schedule,
                formats.rate(kept.prediction.samples_per_second),
                kept.cluster.num_devices,
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


@plans.command("rename")
def rename_plan(
    plan_id: PlanId, name: Annotated[str, typer.Argument(help="Its new name.", show_default=False)]
) -> None:
    """Give a kept plan another name."""
    out.print(f"plan {plan_id} is {connect().plans.rename(plan_id, name).name}", markup=False)


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
        ["profile", "model", "microbatch", "device", "layers", "made"],
        [
            [
                kept.id,
                kept.profile.name,
                kept.profile.microbatch,
                kept.profile.device,
                len(kept.profile.layers),
                formats.ago(kept.created_at),
            ]
            for kept in found
        ],
    )


@profiles.command("delete")
def delete_profile(profile_id: ProfileId, yes: Yes = False) -> None:
    """Delete a profile from which no plan was made. The run that measured it stays."""
    service = connect().profiles
    kept = service.get(profile_id)
    if not yes:
        typer.confirm(f"Delete profile {kept.id} ({kept.profile.name})?", abort=True)
    err.print(f"profile {service.delete(profile_id).id} is deleted")
