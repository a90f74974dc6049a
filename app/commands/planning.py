"""What `plan` and `compare` share: the question that they ask, and how an answer is shown."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from app import formats
from app.commands.options.acting import connect
from backend.cluster.cluster import Cluster
from backend.cluster.document import read_cluster
from backend.cluster.presets import this_machine
from backend.codec import to_plain
from backend.errors import InvalidInput
from backend.planning.optimizers import OPTIMIZERS
from backend.prediction.answer import Answer
from backend.prediction.question import Question, RecomputePolicy
from backend.profiles.files import read_profile_file
from backend.profiles.profile import Profile
from backend.whole import is_whole

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
Schedule = Annotated[
    str,
    typer.Option(
        "--schedule",
        help="The schedule (plan: pipedream where a planner does not choose; compare: all).",
    ),
]
Target = Annotated[
    str,
    typer.Option("--on", help="The same profile on another device, by its peaks (a100, h100...)."),
]
MeasuredOn = Annotated[
    str, typer.Option("--measured-on", help="What the profile was measured on, for --on (v100).")
]
Precision = Annotated[
    str, typer.Option("--precision", help="Of the compute, for --on (default: the profile's).")
]
Also = Annotated[
    list[str] | None,
    typer.Option("--also", help="The same model's profile at another microbatch size; again."),
]
Recomputation = Annotated[
    RecomputePolicy,
    typer.Option("--recompute", help="Compute activations again: where it must be, never, always."),
]
Chunks = Annotated[
    int, typer.Option("--chunks", help="Stages on a device under a schedule that interleaves.")
]
Pipelines = Annotated[
    int, typer.Option("--pipelines", help="Most parallel pipelines of AvgPipe on the same devices.")
]
PipelinesTook = Annotated[
    tuple[float, float] | None,
    typer.Option(
        "--pipelines-took",
        "--lanes-took",
        help="Seconds per microbatch of one pipeline alone, and of each of two on one device.",
    ),
]
Optimizer = Annotated[str, typer.Option("--optimizer", help=f"One of {', '.join(OPTIMIZERS)}.")]
Memory = Annotated[
    float | None, typer.Option("--memory", min=1, help="Bytes of every device (16e9).")
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


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What the options ask; `profile_id` of a stored profile, None of one from a file."""

    question: Question
    profile_id: int | None


def options(
    profile: ProfileName,
    cluster: ClusterFile = None,
    devices: Devices = 2,
    batch: Batch = None,
    schedule: Schedule = "",
    microbatches: Microbatches = 4,
    optimizer: Optimizer = "momentum",
    memory: Memory = None,
    recompute: Recomputation = RecomputePolicy.AUTO,
    chunks: Chunks = 2,
    pipelines: Pipelines = 3,
    target: Target = "",
    measured_on: MeasuredOn = "",
    also: Also = None,
    took: PipelinesTook = None,
    precision: Precision = "",
) -> PlanOptions:
    """What the options ask. Raises `InvalidInput`."""
    found, profile_id = find_profile(profile, batch)
    question = Question(
        found,
        find_cluster(cluster, devices),
        planner="",
        schedule=schedule,
        batch=microbatches,
        optimizer=optimizer,
        recompute=recompute,
        chunks=chunks,
        pipelines=pipelines,
        further=tuple(find_profile(name, None)[0] for name in also or ()),
    )
    changed = question.under(memory, target, measured_on, precision, took)
    return PlanOptions(changed, None if target else profile_id)


def asking(command: Callable[..., None]) -> Callable[..., None]:
    """`command(asked, ...)` with the options of `options` in the place of `asked`: they are
    written once for all commands that plan."""
    own = list(signature(command, eval_str=True).parameters.values())[1:]
    shared = list(signature(options, eval_str=True).parameters.values())
    names = [each.name for each in shared]

    @wraps(command)
    def with_options(**values: Any) -> None:
        asked = options(**{name: values.pop(name) for name in names})
        command(asked, **values)

    parameters = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in (*shared, *own)]
    with_options.__signature__ = Signature(parameters)  # type: ignore[attr-defined] # typer asks it
    with_options.__annotations__ = {each.name: each.annotation for each in parameters}
    return with_options


def find_profile(name: str, batch: int | None) -> tuple[Profile, int | None]:
    """A stored profile by id, or one read from a file (without an id)."""
    if is_whole(name):
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
        times(found.over_data_parallel) or "not possible",
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
        "lanes": plan.num_pipelines,
        "advance": plan.advance,
        "chunks": plan.partition.chunks,
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
