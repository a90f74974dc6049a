"""Every planner under every schedule, in one table."""

from typing import Annotated

import typer

from app.commands.output import out, print_json, print_table
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
from backend.prediction.answer import compare as compared


def compare(
    profile: ProfileName,
    cluster: ClusterFile = None,
    devices: Devices = 2,
    batch: Batch = None,
    schedule: Annotated[str, typer.Option(help="Only this schedule (default: all).")] = "",
    microbatches: Microbatches = 4,
    optimizer: Optimizer = "momentum",
    memory: Memory = None,
    as_json: Json = False,
) -> None:
    """Every planner and schedule side by side, the fastest first.

    Examples:

        stageflow compare --profile 1 --devices 4

        stageflow compare --profile vgg16/graph.txt --batch 128 --cluster servers.yaml --json
    """
    found, _ = find_profile(profile, batch)
    where = find_cluster(cluster, devices)
    rows = list(compared(question(found, where, schedule, microbatches, optimizer, memory)))
    answers = [row.answer for row in rows if row.answer]
    answers.sort(key=lambda answer: -answer.prediction.samples_per_second)
    refused = [row for row in rows if row.answer is None]
    if as_json:
        faults = [{"planner": r.planner, "schedule": r.schedule, "fault": r.fault} for r in refused]
        return print_json({"plans": [plain(found, a) for a in answers], "refused": faults})
    print_table(f"{found.name} on {where.num_devices} devices", HEAD, map(row, answers))
    for line in refused:
        out.print(f"{line.planner} · {line.schedule or 'any schedule'}: {line.fault}", style="dim")
    return None
