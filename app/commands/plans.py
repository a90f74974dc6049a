"""Planning without a worker: partitions ranked by what the simulator predicts."""

from typing import Annotated

import typer

from app.commands.output import err, out, print_json, print_table
from app.commands.planning import (
    HEAD,
    Batch,
    ClusterFile,
    Devices,
    Json,
    Memory,
    Microbatches,
    Optimizer,
    ProfileName,
    find_cluster,
    find_profile,
    plain,
    question,
    row,
)
from backend.bootstrap import connect
from backend.cluster.cluster import Cluster
from backend.errors import InvalidInput, StageflowError
from backend.planning.catalog import PLANNERS, SEARCHES
from backend.prediction.answer import Answer, answer
from backend.prediction.search import Question


def plan(
    profile: ProfileName,
    cluster: ClusterFile = None,
    devices: Devices = 2,
    batch: Batch = None,
    planner: Annotated[
        str,
        typer.Option(help=f"{', '.join((*PLANNERS, *SEARCHES))} (default: all, ranked)."),
    ] = "",
    schedule: Annotated[
        str,
        typer.Option(help="The schedule (default: pipedream; best and avgpipe choose one)."),
    ] = "",
    microbatches: Microbatches = 4,
    optimizer: Optimizer = "momentum",
    memory: Memory = None,
    save: Annotated[bool, typer.Option("--save", help="Keep the best one, to run it.")] = False,
    as_json: Json = False,
) -> None:
    """Partition a profiled model over a cluster.

    Examples:

        stageflow plan --profile 1 --devices 2 --save

        stageflow plan --profile vgg16/graph.txt --batch 128 --cluster servers.yaml --json

        stageflow plan --profile 1 --cluster servers.yaml --planner best --memory 16e9
    """
    found, profile_id = find_profile(profile, batch)
    where = find_cluster(cluster, devices)
    asked = question(found, where, schedule, microbatches, optimizer, memory)
    answers = [answer(planner, asked)] if planner else _ranked(asked)
    plan_id = _save(profile_id, asked.cluster, answers[0]) if save else None
    if as_json:
        plans = [plain(found, each) for each in answers]
        return print_json({"plan_id": plan_id, **plans[0], "plans": plans})
    print_table(f"plans for {found.name} on {where.num_devices} devices", HEAD, map(row, answers))
    for reason in answers[0].reasons:
        out.print(reason, highlight=False)
    if plan_id is not None:
        out.print(f"saved as plan {plan_id}. Run it: stageflow run --plan {plan_id}")
    return None


def _ranked(asked: Question) -> list[Answer]:
    """Each planner's, the most samples/s first; one of those that found the same plan."""
    found: dict[object, Answer] = {}
    faults: list[StageflowError] = []
    for name in (*PLANNERS, *SEARCHES):
        try:
            one = answer(name, asked)
        except StageflowError as fault:
            faults.append(fault)
            continue
        made = one.prediction.plan
        found.setdefault((made.partition, made.schedule, made.microbatch, made.lanes), one)
    if not found:
        raise faults[0]
    return sorted(found.values(), key=lambda one: -one.prediction.samples_per_second)


def _save(profile_id: int | None, cluster: Cluster, found: Answer) -> int:
    if profile_id is None:
        raise InvalidInput(
            "only a plan for a stored profile can be saved",
            "Profile the model first: stageflow profile MODEL, then --profile ID.",
        )
    stored = connect().plans.save(profile_id, cluster, found.prediction)
    err.print(f"plan {stored.id} saved")
    return stored.id
