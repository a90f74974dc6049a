"""What `plan` and `compare` share: the question that they ask, and how an answer is shown."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from app import formats
from backend.bootstrap import connect
from backend.cluster.cluster import Cluster
from backend.cluster.document import read_cluster
from backend.cluster.presets import this_machine
from backend.codec import to_plain
from backend.errors import InvalidInput
from backend.pipeline.schedules.catalog import schedule as schedule_named
from backend.prediction.answer import Answer
from backend.prediction.search import Question
from backend.profiles.document import check_profile
from backend.profiles.files import read_profile_file
from backend.profiles.profile import Profile

ProfileName = Annotated[
    str, typer.Option("--profile", help="Id of a stored profile, or a file (.json, graph.txt).")
]
ClusterFile = Annotated[
    Path | None,
    typer.Option("--cluster", help="Cluster YAML; this machine's devices without it."),
]
Devices = Annotated[
    int, typer.Option("--devices", min=1, help="Devices of this machine, without YAML.")
]
Batch = Annotated[
    int | None, typer.Option("--batch", min=1, help="Samples per microbatch of a graph.txt.")
]
Microbatches = Annotated[
    int, typer.Option("--microbatches", min=1, help="Microbatches per update, where it is one.")
]
Optimizer = Annotated[str, typer.Option("--optimizer", help="sgd, momentum, adam or adamw.")]
Memory = Annotated[
    float | None, typer.Option("--memory", min=0, help="Bytes of every device (16e9).")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]

HEAD = [
    "plan",
    "planner",
    "samples/s",
    "per minibatch",
    "vs data parallel",
    "vs 1 device",
    "sent",
    "memory",
    "gap",
]


def question(
    profile: Profile,
    cluster: Cluster,
    schedule: str,
    microbatches: int,
    optimizer: str,
    memory: float | None,
) -> Question:
    """What the options ask. Raises `InvalidInput`."""
    check_profile(profile)
    if schedule:
        schedule_named(schedule)
    if memory is not None:
        each = tuple(replace(device, memory=memory) for device in cluster.devices)
        cluster = replace(cluster, device=replace(cluster.device, memory=memory), devices=each)
    return Question(profile, cluster, schedule, microbatches, optimizer)


def find_profile(name: str, batch: int | None) -> tuple[Profile, int | None]:
    """A stored profile by id, or one read from a file (without an id)."""
    if name.isdigit():
        stored = connect().profiles.get(int(name))
        return stored.profile, stored.id
    path = Path(name)
    return read_profile_file(str(path), text(path), batch), None


def find_cluster(path: Path | None, devices: int) -> Cluster:
    """From a YAML file, or so many devices of this machine."""
    return read_cluster(text(path)) if path else this_machine(devices)


def text(path: Path) -> str:
    """What the file holds. Raises `InvalidInput`."""
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as fault:
        raise InvalidInput(
            f"{path} cannot be read: {fault}", "Give the path of a text file."
        ) from None


def row(found: Answer) -> list[str]:
    """The cells under `HEAD`."""
    prediction = found.prediction
    return [
        prediction.plan.label,
        prediction.plan.planner,
        f"{prediction.samples_per_second:,.0f}",
        formats.seconds(prediction.seconds_per_minibatch),
        times(found.over_data_parallel),
        times(found.over_one_device),
        formats.size(prediction.sent_bytes),
        formats.size(max(prediction.memory_bytes)),
        formats.percent(found.gap),
    ]


def times(ratio: float | None) -> str:
    """A ratio as "4.70x"; nothing where there is none."""
    return "" if ratio is None else f"{ratio:.2f}x"


def plain(profile: Profile, found: Answer) -> dict[str, Any]:
    """An answer for scripts: seconds, bytes and ratios; layers by name, devices by number."""
    prediction = to_plain(type(found.prediction), found.prediction)
    chosen = prediction.pop("plan")
    plan = found.prediction.plan
    layers = profile.in_order(plan.partition.order).layers
    return {
        "planner": chosen["planner"],
        "schedule": chosen["schedule"],
        "label": plan.label,
        "microbatch": plan.microbatch,
        "batch": plan.batch,
        "recompute": plan.recompute,
        "lanes": plan.lanes,
        "advance": plan.advance,
        "order": chosen["partition"]["order"],
        "stages": [
            stage | {"layers": [layer.name for layer in layers[stage["first"] : stage["stop"]]]}
            for stage in chosen["partition"]["stages"]
        ],
        "speedup_over_data_parallel": found.over_data_parallel,
        "speedup_over_one_device": found.over_one_device,
        "data_parallel_sent_bytes": found.data_parallel_bytes,
        "lower_bound_seconds": found.bound_seconds,
        "gap": found.gap,
        "bottleneck_seconds": found.bottleneck_seconds,
        "planner_seconds": found.planner_seconds,
        "reason": found.reasons[0] if found.reasons else "",
        "reasons": list(found.reasons),
        **prediction,
    }
