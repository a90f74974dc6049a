"""What `plan` and `compare` share: the question that they ask, and how an answer is shown."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from app.commands.options.acting import connect
from app.commands.options.training import StateOption
from app.commands.plain_answer import plain_answer
from backend.cluster.cluster import Cluster
from backend.cluster.document import read_cluster
from backend.cluster.presets import PRESETS, preset, this_machine
from backend.codec import to_plain
from backend.comparison.aims import FASTEST, Aim, aim_of
from backend.comparison.stragglers import ENOUGH
from backend.comparison.to_target import Histories, Target, TimeToTarget
from backend.errors import InvalidInput
from backend.pipeline.codecs.catalog import CODECS, PLAIN
from backend.planning.optimizers import AVERAGED, OptimizerName
from backend.planning.savings import MemorySaving
from backend.planning.sites import SITE_RULES
from backend.prediction.answer import Answer
from backend.prediction.energy import Energy
from backend.prediction.question import Question
from backend.profiles.files import read_profile_file
from backend.profiles.profile import Profile
from backend.whole import is_whole

ClusterFile = Annotated[
    str,
    typer.Option(
        "--cluster",
        help="Cluster YAML, a preset with its servers (dgx-h100:4), a kept cluster's name, or "
        "machines of a pool (pool:gpu:2), or of a run with their measured speeds (run:42); "
        "without it this machine's devices. "
        f"Presets: {', '.join(PRESETS)}.",
    ),
]
Devices = Annotated[
    int, typer.Option("--devices", min=1, help="Devices of this machine, without YAML.")
]
Batch = Annotated[
    int | None, typer.Option("--batch", min=1, help="Samples per microbatch of a graph.txt.")
]


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What the options ask; `profile_id` of a stored profile, None of one from a file. `aim`:
    what answers are ranked by."""

    question: Question
    profile_id: int | None
    aim: Aim = FASTEST

    def plain(self, found: Answer) -> dict[str, Any]:
        """An answer for scripts, with the joules and the money of a sample (None where not known);
        where a target is asked for, with the time to it."""
        values = plain_answer(self.question.profile, found)
        joules = found.energy
        values["energy"] = None if joules is None else to_plain(Energy, joules)
        values["money"] = found.money
        if self.aim.target is not None:
            known = self.aim.time_of(found)
            values["to_target"] = None if known is None else to_plain(TimeToTarget, known)
        return values


def options(
    profile: Annotated[
        str, typer.Option(help="Id of a stored profile, or a file (.json, graph.txt).")
    ],
    cluster: ClusterFile = "",
    devices: Devices = 2,
    batch: Batch = None,
    schedule: Annotated[
        str,
        typer.Option(help="The schedule (plan: that of the planner, or pipedream; compare: all)."),
    ] = "",
    microbatches: Annotated[
        int, typer.Option(min=1, help="Microbatches per update, under schedules with batches.")
    ] = 4,
    update_times: Annotated[
        int, typer.Option(help="How many times as many samples an update may take.")
    ] = 1,
    search_on: Annotated[
        bool, typer.Option("--search-on", help="Take up to thirty times the work (minutes).")
    ] = False,
    optimizer: Annotated[OptimizerName, typer.Option(help="Its state counts as memory.")] = (
        "momentum"
    ),
    ema: Annotated[
        bool, typer.Option("--ema", help="Count averaged weights beside (4 bytes a weight).")
    ] = False,
    memory: Annotated[
        float | None, typer.Option(min=1, help="Bytes of every device (16e9).")
    ] = None,
    recompute: Annotated[
        MemorySaving,
        typer.Option(help="Compute activations again: where memory requires it, never, always."),
    ] = MemorySaving.AUTO,
    shard_state: Annotated[
        MemorySaving, typer.Option(help="Shard the optimizer's state over replicas: likewise.")
    ] = MemorySaving.AUTO,
    chunks: Annotated[
        int, typer.Option(help="Stages per device under a schedule that interleaves.")
    ] = 2,
    pipelines: Annotated[
        int, typer.Option(help="Maximum number of parallel pipelines of AvgPipe per device.")
    ] = 3,
    run_ahead: Annotated[
        int | None,
        typer.Option(
            help="Further microbatches in flight per hop of a schedule that never drains (default: "
            "as many as simulation finds faster)."
        ),
    ] = None,
    codec: Annotated[
        str,
        typer.Option(
            help="How messages between stages are coded: none, "
            f"{', '.join(CODECS)}, auto (where it is faster), or one per cut (int8,none)."
        ),
    ] = PLAIN,
    sites: Annotated[
        str, typer.Option(help=f"Rule between sites ({', '.join(SITE_RULES)}): diloco:every=100.")
    ] = "",
    split_channels: Annotated[
        bool,
        typer.Option(
            "--split-channels",
            help="Let replicas split the linear and embedding layers that are faster so.",
        ),
    ] = False,
    codec_of_sums: Annotated[str, typer.Option(help="Of sums: bf16, auto, dct:keep=0.01.")] = "",
    target: Annotated[
        str,
        typer.Option(
            "--on",
            help="The profile on another device, by its peaks (a100, h100...), or on the cluster's "
            "own, by what the cluster file says of it (cluster).",
        ),
    ] = "",
    measured_on: Annotated[
        str, typer.Option(help="What the profile was measured on, for --on (v100).")
    ] = "",
    also: Annotated[
        list[str] | None,
        typer.Option(help="The same model's profile at another microbatch size; repeatable."),
    ] = None,
    took: Annotated[
        tuple[float, float] | None,
        typer.Option(
            "--pipelines-took",
            "--lanes-took",
            help="Seconds per microbatch of one pipeline on a device, and of each of two.",
        ),
    ] = None,
    precision: Annotated[
        str, typer.Option(help="Of the compute, for --on (default: the profile's).")
    ] = "",
    state_precision: StateOption = "float32",
    target_accuracy: Annotated[
        float | None,
        typer.Option("--target", help="Rank by the time to this held-out accuracy (0.95)."),
    ] = None,
    target_loss: Annotated[
        float | None, typer.Option(help="Rank by the time to this held-out loss.")
    ] = None,
    energy_floor: Annotated[
        float | None,
        typer.Option(
            help="Rank by the joules of a sample, of plans with at least this share of the most "
            "samples/s (0.9)."
        ),
    ] = None,
    money_floor: Annotated[
        float | None, typer.Option(help="Rank by the money of a sample, likewise.")
    ] = None,
) -> PlanOptions:
    """What the options ask. Raises `InvalidInput`."""
    found, profile_id = find_profile(profile, batch)
    learnt = partial(_learnt, profile_id)
    aim = aim_of(target_accuracy, target_loss, energy_floor, money_floor, learnt)
    question = Question(
        found,
        find_cluster(cluster, devices),
        planner="",
        schedule=schedule,
        batch=microbatches,
        optimizer=optimizer + AVERAGED * ema,
        recompute=recompute,
        shard_state=shard_state,
        chunks=chunks,
        pipelines=pipelines,
        update_times=update_times,
        search_on=search_on,
        run_ahead=run_ahead,
        codec=codec,
        sites=sites,
        codec_of_sums=codec_of_sums,
        split_channels=split_channels,
        further=tuple(find_profile(name, None)[0] for name in also or ()),
    )
    changed = question.under(memory, target, measured_on, precision, took, state_precision)
    kept_id = None if target else profile_id
    return PlanOptions(changed, kept_id, aim)


def _learnt(profile_id: int | None, target: Target) -> Histories:
    if profile_id is None:
        raise InvalidInput(
            "runs are known of stored profiles alone",
            "Give the number of a stored profile, or leave the target out.",
        )
    backend = connect()
    return backend.runs.learnt(backend.profiles.get(profile_id).definition_id, target)


def find_profile(name: str, batch: int | None) -> tuple[Profile, int | None]:
    """A stored profile by id, or one read from a file (without an id)."""
    if is_whole(name):
        stored = connect().profiles.get(int(name))
        return stored.profile, stored.id
    path = Path(name)
    return read_profile_file(str(path), path.read_bytes(), batch), None


def find_cluster(name: str, devices: int) -> Cluster:
    """From a YAML file, a preset such as "dgx-h100:4", a pool's machines ("pool:gpu:2", "pool:gpu"
    for all of them), that of a run as its ranks were measured ("run:42"), a kept cluster by its
    name, or so many devices of this machine."""
    if not name:
        return this_machine(devices)
    kind, colon, rest = name.partition(":")
    if kind == "pool":
        pool, _, machines = rest.partition(":")
        if machines and not is_whole(machines):
            raise InvalidInput(f"{name} names no number of machines", "For example: pool:gpu:2")
        return connect().pools.get(pool).room.cluster(int(machines or 0))
    if kind == "run" and is_whole(rest):
        return _as_measured(int(rest))
    path = Path(name)
    if path.exists() or path.suffix in (".yaml", ".yml", ".json"):
        return read_cluster(text(path))
    return preset(kind, int(rest)) if colon and is_whole(rest) else connect().clusters.find(name)


def _as_measured(run_id: int) -> Cluster:
    runs = connect().runs
    found = runs.paces(runs.get(run_id))
    if found is None:
        raise InvalidInput(
            f"run {run_id} does not tell how fast its devices are",
            "That takes a training by a kept plan, without parallel pipelines and not emulated, "
            f"which has ended epochs of {ENOUGH} minibatches in all.",
        )
    return found.cluster


def text(path: Path) -> str:
    """What the file holds. Raises `InvalidInput`."""
    try:
        return path.read_text()
    except UnicodeDecodeError as fault:
        raise InvalidInput(f"{path} is not text: {fault}", "Give that of a text file.") from None
