"""Planning without a worker: partitions ranked by what the simulator predicts."""

from pathlib import Path
from typing import Annotated, Any

import typer

from app import formats
from app.commands.output import err, out, print_json, print_table
from backend.bootstrap import connect
from backend.cluster.cluster import Cluster
from backend.cluster.document import read_cluster
from backend.cluster.presets import local
from backend.codec import to_plain
from backend.errors import InvalidInput
from backend.planning.plan import PlanDoesNotFit
from backend.prediction.propose import Proposal, propose
from backend.profiles.files import read_profile_file
from backend.profiles.profile import Profile

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def plan(
    profile: Annotated[
        str, typer.Option(help="Id of a stored profile, or a file (.json, graph.txt).")
    ],
    cluster: Annotated[
        Path | None, typer.Option(help="Cluster YAML; this machine's devices without it.")
    ] = None,
    devices: Annotated[int, typer.Option(min=1, help="Devices of this machine, without YAML.")] = 2,
    microbatch: Annotated[
        int | None, typer.Option("--batch", min=1, help="Samples per microbatch of a graph.txt.")
    ] = None,
    planner: Annotated[str, typer.Option(help="Only this planner (default: all, ranked).")] = "",
    schedule: Annotated[str, typer.Option(help="gpipe, 1f1b-flush or pipedream.")] = "pipedream",
    microbatches: Annotated[
        int, typer.Option(min=1, help="Microbatches per update of a flush schedule.")
    ] = 4,
    optimizer: Annotated[str, typer.Option(help="sgd, momentum or adam.")] = "momentum",
    save: Annotated[bool, typer.Option("--save", help="Keep the best one, to run it.")] = False,
    as_json: Json = False,
) -> None:
    """Partition a profiled model over a cluster.

    Examples:

        stageflow plan --profile 1 --devices 2 --save

        stageflow plan --profile vgg16/graph.txt --cluster servers.yaml --json
    """
    found, profile_id = _profile(profile, microbatch)
    where = read_cluster(_text(cluster)) if cluster else local(devices)
    proposals = [
        proposal
        for proposal in propose(found, where, schedule, microbatches, optimizer)
        if planner in ("", proposal.prediction.plan.planner)
    ]
    if not proposals:
        raise PlanDoesNotFit(
            f"planner {planner!r} has no plan of its own here",
            "Leave --planner out to see every plan.",
        )
    plan_id = _save(profile_id, where, proposals[0]) if save else None
    if as_json:
        return print_json({"plan_id": plan_id, "plans": [_plain(found, p) for p in proposals]})
    print_table(
        f"plans for {found.name} on {where.num_devices} devices", HEAD, map(_row, proposals)
    )
    out.print(proposals[0].reason, highlight=False)
    if plan_id is not None:
        out.print(f"saved as plan {plan_id}. Run it: stageflow run --plan {plan_id}")
    return None


HEAD = ["plan", "planner", "samples/s", "per minibatch", "bubble", "vs data parallel", "sent"]


def _row(proposal: Proposal) -> list[str]:
    prediction = proposal.prediction
    return [
        prediction.plan.label,
        prediction.plan.planner,
        f"{prediction.samples_per_second:,.0f}",
        formats.seconds(prediction.seconds_per_minibatch),
        formats.percent(prediction.bubble),
        f"{proposal.speedup:.2f}x" if proposal.speedup else "",
        formats.size(prediction.sent_bytes),
    ]


def _plain(profile: Profile, proposal: Proposal) -> dict[str, Any]:
    prediction = to_plain(type(proposal.prediction), proposal.prediction)
    chosen = prediction.pop("plan")
    stages = [
        stage | {"layers": [layer.name for layer in profile.layers[stage["first"] : stage["stop"]]]}
        for stage in chosen["partition"]["stages"]
    ]
    return {
        "planner": chosen["planner"],
        "schedule": chosen["schedule"],
        "label": proposal.prediction.plan.label,
        "stages": stages,
        "speedup_over_data_parallel": proposal.speedup,
        "reason": proposal.reason,
        **prediction,
    }


def _profile(name: str, microbatch: int | None) -> tuple[Profile, int | None]:
    """A stored profile by id, or one read from a file."""
    if name.isdigit():
        stored = connect().profiles.get(int(name))
        return stored.profile, stored.id
    path = Path(name)
    return read_profile_file(str(path), _text(path), microbatch), None


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as fault:
        raise InvalidInput(
            f"{path} cannot be read: {fault}", "Give the path of a text file."
        ) from None


def _save(profile_id: int | None, cluster: Cluster, proposal: Proposal) -> int:
    if profile_id is None:
        raise InvalidInput(
            "only a plan for a stored profile can be saved",
            "Profile the model first: stageflow profile MODEL, then --profile ID.",
        )
    stored = connect().plans.save(profile_id, cluster, proposal.prediction)
    err.print(f"plan {stored.id} saved")
    return stored.id
