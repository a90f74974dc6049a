"""The page, the REST API, the command and the notebook give the same answers to a question.

The grid is every pair of values of two of its axes: planners, schedules, memory, recomputation,
microbatches per update, optimizers, precisions of state, profiles and clusters.
"""

import json
import random
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, replace
from io import StringIO
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest

import stageflow
from app.cli import app
from app.client import ApiProblem, Client
from app.components.plan.wanted import Wanted
from backend.bootstrap import Backend
from backend.cluster.cluster import Cluster, Device, Level
from backend.cluster.document import write_cluster
from backend.codec import to_plain
from backend.errors import StageflowError
from backend.pipeline.schedules.catalog import executable_schedules
from backend.planning.cuts import BY_HAND, read_cut
from backend.planning.savings import MemorySaving
from backend.prediction.answer import Answer, by_hand, compare, rank
from backend.prediction.prediction import Prediction
from backend.prediction.question import PLANNER_NAMES
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from backend.runs.profiles import StoredProfile
from tests.api.conftest import module_home, serving  # noqa: F401 # a fixture
from tests.app import seed

MIB = 2**20
OWN = ""


def chain(name: str, count: int, microbatch: int, weights: int, outputs: int) -> Profile:
    layers = tuple(
        Layer(
            f"{name}{n}",
            "Linear",
            *(1e-3 * (1 + n % 3), 2e-3),
            output_bytes=outputs // (n + 1),
            parameter_bytes=weights * (1 + n),
            update=1e-5 * n,
        )
        for n in range(count)
    )
    return Profile(name, ModelGraph.chain(layers), microbatch)


def branching() -> Profile:
    """A residual connection around two of five layers."""
    layers = tuple(Layer(f"r{n}", "Conv2d", 3e-3, 4e-3, MIB, MIB * (1 + n)) for n in range(5))
    edges = ((0, 1), (1, 2), (2, 3), (3, 4), (1, 4))
    return Profile("branching", ModelGraph(layers, edges), 6)


PROFILES = (
    chain("wide", 8, 8, MIB // 4, 8 * MIB),
    chain("deep", 6, 4, 4 * MIB, MIB),
    branching(),
)
CLUSTERS = (
    Cluster((Level(4, 2.5e9, 60e-6),), Device("cpu")),
    Cluster((Level(2, 12e9), Level(2, 1.25e9, sites=True)), Device("V100", 16e9, price=2.5)),
    Cluster((Level(3, 1e9),), devices=tuple(Device(f"d{n}", 8e9, 1.0 + n) for n in range(3))),
)
AXES: dict[str, Sequence[Any]] = {
    "planner": ("", *PLANNER_NAMES),
    "schedule": (OWN, *(member.name for member in executable_schedules())),
    "memory": (None, 120 * MIB, 60 * MIB),
    "recompute": tuple(MemorySaving),
    "shard_state": tuple(MemorySaving),
    "batch": (2, 4, 12),
    "optimizer": ("sgd", "momentum", "adam", "adamw"),
    "profile": range(len(PROFILES)),
    "cluster": range(len(CLUSTERS)),
    "others": (
        {},
        {"chunks": 3},
        {"pipelines": 1},
        {"update_times": 3},
        {"run_ahead": 0},
        {"codec": "int8"},
        {"sites": "diloco:every=10"},
        {"codec_of_sums": "dct:keep=0.01"},
        {"codec_of_sums": "auto"},
        {"split_channels": True},
        {"search_on": True},
        {"took": (0.01, 0.015)},
        {"further": True},
        {"device": "A100", "measured_on": "V100"},
    ),
    "state_precision": ("float32", "bfloat16-masters", "bfloat16"),
}


def pairwise(axes: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Rows in which every two values of two axes meet once at least, by greedy choice."""
    draw, rows = random.Random(13), []
    sizes = [range(len(axis)) for axis in axes]
    missing = {
        (a, x, b, y)
        for a, b in combinations(range(len(axes)), 2)
        for x, y in product(sizes[a], sizes[b])
    }
    while missing:
        a, x, b, y = min(missing)
        tries = []
        for _ in range(30):
            row = [draw.choice(size) for size in sizes]
            row[a], row[b] = x, y
            met = {(c, row[c], d, row[d]) for c, d in combinations(range(len(axes)), 2)}
            tries.append((len(met & missing), row, met))
        _, row, met = max(tries, key=lambda each: each[0])
        missing -= met
        rows.append(tuple(axis[place] for axis, place in zip(axes, row, strict=True)))
    return rows


ROWS = [dict(zip(AXES, row, strict=True)) for row in pairwise(list(AXES.values()))]


@dataclass(frozen=True)
class Doors:
    """A server over a database with the profiles, and the folder of cluster files."""

    client: Client
    backend: Backend
    stored: tuple[StoredProfile, ...]
    halves: tuple[StoredProfile, ...]
    folder: Path

    def wanted(self, row: dict[str, Any]) -> Wanted:
        """What the page's form holds."""
        values = {k: v for k, v in row.items() if k not in ("profile", "cluster", "others")}
        others = dict(row["others"])
        if others.pop("further", False):
            others["further"] = (self.halves[row["profile"]],)
        return Wanted(self.stored[row["profile"]], CLUSTERS[row["cluster"]], **values, **others)

    def asked_over_http(self, wanted: Wanted, **more: Any) -> dict[str, Any]:
        """The request that asks the same."""
        return {
            "profile_id": wanted.stored.id,
            "cluster": write_cluster(wanted.cluster),
            **{name: getattr(wanted, name) for name in ("planner", "schedule", "batch", "memory")},
            **{name: getattr(wanted, name) for name in ("optimizer", "chunks", "pipelines")},
            **{name: getattr(wanted, name) for name in ("device", "measured_on", "precision")},
            "state_precision": wanted.state_precision,
            "recompute": wanted.recompute.value,
            "shard_state": wanted.shard_state.value,
            "also": [kept.id for kept in wanted.further],
            "lanes_took": wanted.took,
            "update_times": wanted.update_times,
            "run_ahead": wanted.run_ahead,
            "codec": wanted.codec,
            "sites": wanted.sites,
            "codec_of_sums": wanted.codec_of_sums,
            "split_channels": wanted.split_channels,
            "search_on": wanted.search_on,
        } | more

    def options(self, wanted: Wanted) -> list[str]:
        """The options of `plan` and `compare` that ask the same."""
        place = self.folder / f"{CLUSTERS.index(wanted.cluster)}.yaml"
        place.write_text(write_cluster(wanted.cluster))
        return [
            *("--profile", str(wanted.stored.id), "--cluster", str(place), "--json"),
            *("--schedule", wanted.schedule, "--microbatches", str(wanted.batch)),
            *("--optimizer", wanted.optimizer, "--recompute", wanted.recompute.value),
            *("--state-precision", wanted.state_precision),
            *("--shard-state", wanted.shard_state.value),
            *("--update-times", str(wanted.update_times)),
            *(() if wanted.run_ahead is None else ("--run-ahead", str(wanted.run_ahead))),
            *("--codec", wanted.codec, "--sites", wanted.sites),
            *("--codec-of-sums", wanted.codec_of_sums),
            *(("--split-channels",) if wanted.split_channels else ()),
            *(("--search-on",) if wanted.search_on else ()),
            *("--chunks", str(wanted.chunks), "--pipelines", str(wanted.pipelines)),
            *(("--memory", str(wanted.memory)) if wanted.memory else ()),
            *(("--pipelines-took", *map(str, wanted.took)) if wanted.took else ()),
            *(
                ("--on", wanted.device, "--measured-on", wanted.measured_on)
                if wanted.device
                else ()
            ),
            *(word for kept in wanted.further for word in ("--also", str(kept.id))),
        ]


@pytest.fixture(scope="module")
def doors(module_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:  # noqa: F811
    backend = seed.fresh()
    definition = backend.definitions.add_zoo("mlp")
    keep = [backend.profiles.add(profile, definition.id) for profile in PROFILES]
    halves = [
        backend.profiles.add(replace(profile, microbatch=profile.microbatch // 2), definition.id)
        for profile in PROFILES
    ]
    with serving() as url:
        folder = tmp_path_factory.mktemp("clusters")
        yield Doors(Client(url), backend, tuple(keep), tuple(halves), folder)
    backend.close()


def command(*words: str) -> Any:
    """What `stageflow WORDS --json` prints; raises what it would say."""
    said = StringIO()
    with redirect_stdout(said):
        app(list(words), standalone_mode=False)
    return json.loads(said.getvalue())


def in_notebook(wanted: Wanted) -> list[Answer]:
    """The plan of a notebook that asks the same, and its alternatives."""
    same = ("planner", "schedule", "memory", "optimizer", "chunks", "pipelines", "device")
    same += (
        "measured_on",
        "precision",
        "took",
        "state_precision",
        "update_times",
        "run_ahead",
        "codec",
        "sites",
        "codec_of_sums",
        "split_channels",
    )
    best = stageflow.plan(
        wanted.stored.profile,
        wanted.cluster,
        microbatches=wanted.batch,
        recompute=wanted.recompute.value,
        shard_state=wanted.shard_state.value,
        also=[kept.profile for kept in wanted.further],
        **{name: getattr(wanted, name) for name in same},
    )
    return [best.answer, *(each.answer for each in best.alternatives)]


def of_page(found: Answer) -> dict[str, Any]:
    """An answer as the REST API gives it."""
    values = asdict(replace(found, prediction=None))  # type: ignore[arg-type]
    return values | {
        "prediction": to_plain(Prediction, found.prediction),
        "speedup": values.pop("over_data_parallel"),
        "reason": found.reason,
        "reasons": list(found.reasons),
        "gap": found.gap,
        "samples_per_update": found.samples_per_update,
        "to_target": None,
    }


NAMES = {
    "speedup": "speedup_over_data_parallel",
    "over_one_device": "speedup_over_one_device",
    "data_parallel_bytes": "data_parallel_sent_bytes",
    "bound_seconds": "lower_bound_seconds",
}
OF_PLAN = (
    "planner",
    "schedule",
    "microbatch",
    "batch",
    "recompute",
    "shard_state",
    "lanes",
    "advance",
    "run_ahead",
    "codecs",
    "sites",
    "kept_order",
    "codec_of_sums",
    "splits",
)


def of_command(found: dict[str, Any]) -> dict[str, Any]:
    """The same from what the command prints."""
    prediction = {name: found[name] for name in Prediction.__slots__ if name != "plan"}
    stages = [{k: v for k, v in stage.items() if k != "layers"} for stage in found["stages"]]
    placed = {name: found[name] for name in ("order", "chunks", "placement")}
    partition = {"stages": stages} | placed
    prediction["plan"] = {name: found[name] for name in OF_PLAN} | {"partition": partition}
    same = ("gap", "bottleneck_seconds", "planner_seconds", "reason", "reasons")
    same += ("samples_per_update", "is_short", "stopped", "energy", "money")
    return {
        "prediction": prediction,
        **{name: found[other] for name, other in NAMES.items()},
        **{name: found[name] for name in same},
        "to_target": found.get("to_target"),
    }


def timeless(found: dict[str, Any]) -> dict[str, Any]:
    """Without how long it took, and what depends on the other answers."""
    of_others = ("planner_seconds", "is_pareto")
    return {name: value for name, value in found.items() if name not in of_others}


def outcome(ask: Any) -> Any:
    """The answers, or the words of the fault."""
    try:
        return [timeless(found) for found in ask()]
    except (StageflowError, ApiProblem) as fault:
        return str(fault), fault.advice


@pytest.mark.parametrize("row", ROWS, ids=[str(number) for number in range(len(ROWS))])
def test_four_doors_one_answer(doors: Doors, row: dict[str, Any]) -> None:
    wanted = doors.wanted(row)
    page = outcome(lambda: map(of_page, rank(wanted.question)))
    words = ["plan", *doors.options(wanted), "--planner", wanted.planner]
    asked = doors.asked_over_http(wanted)
    assert outcome(lambda: doors.client.propose(**asked)) == page
    assert outcome(lambda: map(of_command, command(*words)["plans"])) == page
    assert outcome(lambda: map(of_page, in_notebook(wanted))) == page


@pytest.mark.parametrize("schedule", ["", "interleaved"])
def test_three_doors_one_table(doors: Doors, schedule: str) -> None:
    wanted = Wanted(doors.stored[0], CLUSTERS[1], planner="", schedule=schedule)
    replies = list(compare(wanted.question))
    page = {
        (reply.planner, reply.schedule): timeless(of_page(reply.answer))
        if reply.answer
        else str(reply.fault)
        for reply in replies
    }
    over_http = doors.client.compare(**doors.asked_over_http(wanted))
    printed = command("compare", *doors.options(wanted))
    assert by_name(over_http["plans"], over_http["refused"]) == page
    assert by_name(map(of_command, printed["plans"]), printed["refused"]) == page


def by_name(plans: Any, refused: Any) -> dict[tuple[str, str], Any]:
    found = {(each["planner"], each["schedule"]): each["fault"] for each in refused}
    for each in plans:
        plan = each["prediction"]["plan"]
        found[plan["planner"], plan["schedule"]] = timeless(each)
    return found


@pytest.mark.parametrize("cut", ["3x3-8x1", "3x1-8x1", "4x4"])
def test_three_doors_one_judgement_of_a_cut_by_hand(doors: Doors, cut: str) -> None:
    wanted = Wanted(doors.stored[0], CLUSTERS[1], planner="", schedule="1f1b-flush")
    question = wanted.question
    base = rank(question)[0].prediction.plan

    def page() -> list[dict[str, Any]]:
        partition = read_cut(cut, base.partition, question.cluster.num_devices)
        plan = replace(question.plan(BY_HAND, partition), partition=partition)
        return [of_page(by_hand(question, plan))]

    asked = doors.asked_over_http(wanted, cut=cut)
    words = ["plan", *doors.options(wanted), "--cut", cut]
    found = outcome(page)
    assert outcome(lambda: doors.client.propose(**asked)) == found
    assert outcome(lambda: map(of_command, command(*words)["plans"])) == found
