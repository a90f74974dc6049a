"""`plan` and `compare` as people script against them."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from backend.cluster.document import read_cluster, write_cluster
from backend.cluster.presets import preset
from backend.planning.catalog import PLANNERS, SEARCHES
from backend.profiles.document import write_profile
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from tests.cli.conftest import Command

SERVERS = """\
levels:
  - {count: 2, bandwidth: 12e9, latency: 5e-6}
  - {count: 2, bandwidth: 1.25e9}
device: {name: V100, memory: 16e9, speed: 1.0}
"""


@pytest.fixture
def profile_file(tmp_path: Path) -> Path:
    layers = tuple(Layer(f"layer{n}", "Linear", 1e-3, 2e-3, 10**6, 10**7) for n in range(4))
    path = tmp_path / "profile.json"
    path.write_bytes(write_profile(Profile("four", ModelGraph.chain(layers), microbatch=8)))
    return path


@pytest.fixture
def servers(tmp_path: Path) -> str:
    path = tmp_path / "servers.yaml"
    path.write_text(SERVERS)
    return str(path)


def test_one_planner_answers_with_everything(
    stageflow: Command, profile_file: Path, servers: str
) -> None:
    found = stageflow(
        *("plan", "--profile", str(profile_file), "--cluster", servers, "--planner", "best"),
        *("--microbatches", "8", "--optimizer", "adam", "--fewer", "--json"),
    ).json
    assert {name for stage in found["stages"] for name in stage["layers"]} == {
        f"layer{n}" for n in range(4)
    }
    assert all(set(stage["devices"]) <= {0, 1, 2, 3} for stage in found["stages"])
    assert found["lower_bound_seconds"] <= found["seconds_per_minibatch"]
    assert found["gap"] == pytest.approx(
        1 - found["lower_bound_seconds"] / found["seconds_per_minibatch"]
    )
    assert found["speedup_over_one_device"] > 0
    assert found["speedup_over_data_parallel"] >= 1 - 1e-9
    assert found["data_parallel_sent_bytes"] > 0
    assert len(found["memory_bytes"]) == len(found["stages"])
    assert found["planner_seconds"] > 0
    devices = sum(len(stage["devices"]) for stage in found["stages"])
    joules = 300 * devices / found["samples_per_second"]
    assert found["energy"]["joules"] == pytest.approx(joules)  # a V100 draws 300 W at most
    of_all = ("plans", "plan_id", "fallbacks")
    assert found["plans"] == [{k: v for k, v in found.items() if k not in of_all}]
    (fallback,) = found["fallbacks"]
    assert (fallback["count"], fallback["plan"]["microbatch"]) == (1, found["microbatch"])
    assert 0 < fallback["factor"] < 1
    text = stageflow("plan", "--profile", str(profile_file), "--cluster", servers, "--fewer").out
    assert "If one node is lost: 0." in text


def test_state_in_bfloat16_takes_less_memory(
    stageflow: Command, profile_file: Path, servers: str
) -> None:
    def most(precision: str) -> float:
        found = stageflow(
            *("plan", "--profile", str(profile_file), "--cluster", servers, "--json"),
            *("--planner", "data-parallel", "--optimizer", "adam"),
            *("--state-precision", precision),
        ).json
        return max(found["memory_bytes"])

    names = ("float32", "bfloat16-masters-state16", "bfloat16")
    sizes = [most(name) for name in names]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == len(sizes)


def test_sharded_state_takes_less_memory_and_is_offered(
    stageflow: Command, profile_file: Path, servers: str
) -> None:
    def found(*more: str) -> dict:
        return stageflow(
            *("plan", "--profile", str(profile_file), "--cluster", servers, "--json"),
            *("--planner", "data-parallel", "--optimizer", "adam", *more),
        ).json

    whole, shared = found(), found("--shard-state", "always")
    assert (whole["shard_state"], shared["shard_state"]) == (False, True)
    (most,), (least,) = whole["memory_bytes"], shared["memory_bytes"]
    assert least < most
    offered = found("--memory", f"{(most + least) / 2:.0f}", "--recompute", "never")
    assert offered["shard_state"]
    assert any("sharded over the replicas" in reason for reason in offered["reasons"])


def test_memory_that_nothing_fits_is_said_with_the_smallest_excess(
    stageflow: Command, profile_file: Path, servers: str
) -> None:
    said = stageflow(
        *("plan", "--profile", str(profile_file), "--cluster", servers),
        *("--planner", "pipedream", "--memory", "1"),
    )
    assert said.code == 1
    assert "too much" in said.err
    assert "Recompute" in said.err


def test_compare_has_a_line_for_every_planner(
    stageflow: Command, profile_file: Path, servers: str
) -> None:
    found = stageflow(
        "compare", "--profile", str(profile_file), "--cluster", servers, "--json"
    ).json
    every = [*found["plans"], *found["refused"]]
    assert {row["planner"] for row in every} == {*PLANNERS, *SEARCHES}
    rates = [plan["samples_per_second"] for plan in found["plans"]]
    assert rates == sorted(rates, reverse=True)
    assert all(row["fault"] for row in found["refused"])


def test_compare_prints_a_table(stageflow: Command, profile_file: Path) -> None:
    said = stageflow("compare", "--profile", str(profile_file), "--schedule", "gpipe")
    assert said.code == 0
    assert "data-parallel" in said.out
    assert "gpipe" in said.out


def test_an_unknown_schedule_is_said(stageflow: Command, profile_file: Path) -> None:
    said = stageflow("plan", "--profile", str(profile_file), "--schedule", "magic")
    assert said.code == 1
    assert "1f1b-flush" in said.err


def test_a_partition_by_hand_is_checked_and_judged(
    stageflow: Command, profile_file: Path, servers: str
) -> None:
    asked = ("plan", "--profile", str(profile_file), "--cluster", servers)
    found = stageflow(*asked, "--cut", "3x3-4x1", "--json").json
    assert found["planner"] == "by-hand"
    assert [stage["devices"] for stage in found["stages"]] == [[0, 1, 2], [3]]
    assert found["reasons"]
    said = stageflow(*asked, "--cut", "3x3-4x2")
    assert said.code == 1
    assert "5 replicas do not fit on 4 devices" in said.err


def test_the_same_profile_on_another_device(
    stageflow: Command, profile_file: Path, servers: str
) -> None:
    asked = ("plan", "--profile", str(profile_file), "--cluster", servers, "--planner", "best")
    here = stageflow(*asked, "--json").json
    there = stageflow(*asked, "--measured-on", "v100", "--on", "a100", "--json").json
    assert there["samples_per_second"] > here["samples_per_second"]
    said = stageflow(*asked, "--on", "a100")
    assert said.code == 1
    assert "--measured-on" in said.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("levels: [{count: 4, bandwidth: 12e9", "line"),
        ("levels: [{count: 4, bandwidth: -1}]", "bandwidth"),
        ("levels: [{count: 0, bandwidth: 1e9}]", "count 0"),
        ("levels: [{count: 2, bandwidth: 1e9}]\ndevice: []", "empty"),
        ("levels: [{count: 2, bandwidth: 1e9}]\ndevice: {memory: 0}", "memory 0"),
    ],
)
def test_a_broken_cluster_is_said_without_a_traceback(
    stageflow: Command, profile_file: Path, tmp_path: Path, text: str, told: str
) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text(text)
    said = stageflow("plan", "--profile", str(profile_file), "--cluster", str(broken))
    assert said.code == 1
    assert told in said.err
    assert "Traceback" not in said.err


def test_a_cluster_may_be_kept_by_name(
    stageflow: Command, database: None, profile_file: Path, servers: str
) -> None:
    asked = ("plan", "--profile", str(profile_file), "--planner", "straight", "--json")
    assert "our room" in stageflow("clusters", "save", "our room", servers).out
    found = [stageflow(*asked, "--cluster", name).json for name in ("Our Room", servers)]
    assert found[0]["stages"] == found[1]["stages"]
    assert found[0]["seconds_per_minibatch"] == found[1]["seconds_per_minibatch"]
    (listed,) = stageflow("clusters", "list", "--json").json
    assert listed["name"] == "our room"
    assert "× 2 V100" in stageflow("clusters", "list").out
    assert (
        "the hall; tags paper"
        in stageflow(
            *("clusters", "label", str(listed["id"]), "--name", "the hall", "--tag", "paper")
        ).out
    )
    stageflow("clusters", "delete", str(listed["id"]), "--yes")
    assert stageflow("clusters", "list", "--json").json == []


def test_a_cluster_may_be_a_preset(stageflow: Command, profile_file: Path, tmp_path: Path) -> None:
    written = tmp_path / "a.yaml"
    written.write_text(write_cluster(preset("cluster-a", 1)))
    asked = ("plan", "--profile", str(profile_file), "--planner", "pipedream", "--json")
    found = [stageflow(*asked, "--cluster", at).json for at in ("cluster-a:1", str(written))]
    for answer in found:
        answer.pop("planner_seconds")
        for plan in answer["plans"]:
            plan.pop("planner_seconds")
    assert found[0] == found[1]


def test_plans_are_ranked_by_energy_above_a_floor(
    stageflow: Command, profile_file: Path, servers: str
) -> None:
    asked = ("--profile", str(profile_file), "--cluster", servers, "--energy-floor")
    joules = [
        each["energy"]["joules"] for each in stageflow("plan", *asked, "0", "--json").json["plans"]
    ]
    assert joules == sorted(joules)
    held = stageflow("compare", *asked, "0.95", "--json").json["plans"]
    most = max(each["samples_per_second"] for each in held)
    assert held[0]["samples_per_second"] >= 0.95 * most
    assert "energy per sample" in " ".join(stageflow("plan", *asked, "0.9").out.split())
    unknown = stageflow("plan", *asked[:2], "--devices", "2", "--energy-floor", "0.9").out
    assert "What these devices draw is not known" in " ".join(unknown.split())


def test_plans_are_ranked_by_money_above_a_floor(
    stageflow: Command, profile_file: Path, tmp_path: Path
) -> None:
    priced = tmp_path / "priced.yaml"
    priced.write_text(SERVERS.replace("speed: 1.0", "price: 3.6"))
    asked = ("plan", "--profile", str(profile_file), "--cluster", str(priced), "--money-floor")
    every = stageflow(*asked, "0", "--json").json["plans"]
    costs = [each["money"] for each in every]
    assert costs == sorted(costs)
    held = stageflow(*asked, "0.95", "--json").json["plans"]
    most = max(each["samples_per_second"] for each in held)
    assert held[0]["samples_per_second"] >= 0.95 * most
    assert "money per million" in " ".join(stageflow(*asked, "0.9").out.split())
    unknown = stageflow(*asked[:3], "--devices", "2", "--money-floor", "0.9").out
    assert "What these devices cost is not known" in " ".join(unknown.split())
    both = stageflow(*asked, "0.9", "--energy-floor", "0.9")
    assert both.code != 0
    assert "two floors are given" in both.out + both.err


def test_the_pareto_list_has_no_plan_that_another_beats_in_all(
    stageflow: Command, profile_file: Path, tmp_path: Path
) -> None:
    priced = tmp_path / "priced.yaml"
    priced.write_text(SERVERS.replace("speed: 1.0", "price: 3.6"))
    asked = ("plan", "--profile", str(profile_file), "--cluster", str(priced))
    every = stageflow(*asked, "--json").json["plans"]
    best = stageflow(*asked, "--pareto", "--json").json["plans"]
    assert 1 <= len(best) < len(every)
    for plan in best:
        mine = _measures(plan)
        beaten = (all(a <= b for a, b in zip(_measures(o), mine, strict=True)) for o in every)
        assert sum(beaten) == sum(_measures(other) == mine for other in every)
    assert "per million samples" in " ".join(stageflow(*asked, "--pareto").out.split())
    unknown = stageflow(*asked[:3], "--devices", "2", "--pareto").out
    assert "What these devices draw is not known" in " ".join(unknown.split())


def _measures(plan: dict[str, Any]) -> tuple[float, ...]:
    return 1 / plan["samples_per_second"], plan["energy"]["joules"], plan["money"]


def test_a_core_of_this_machine_is_measured_for_plans(stageflow: Command, tmp_path: Path) -> None:
    file, profile = tmp_path / "cores.yaml", tmp_path / "profile.json"
    assert stageflow("clusters", "measure", "--devices", "2", "-o", str(file)).code == 0
    cluster = read_cluster(file.read_text())
    record = cluster.device.record
    assert cluster.num_devices == 2
    assert record.flops.float32
    assert record.bandwidth
    assert record.launch
    layers = tuple(Layer(f"l{n}", "Linear", 1.0, 2.0, 8, 8, flops=1e9) for n in range(2))
    profile.write_bytes(write_profile(Profile("two", ModelGraph.chain(layers), microbatch=1)))
    asked = ("plan", "--profile", str(profile), "--cluster", str(file), "--cut", "2x1", "--json")
    found = stageflow(*asked, "--on", "cluster").json
    least = 2 * 3 * (record.launch + 1e9 / record.flops.float32)
    assert found["seconds_per_minibatch"] == pytest.approx(least, rel=0.2)


COUNTED = """
import atexit, os, sys
from app.cli import main
atexit.register(lambda: print(len(os.listdir("/proc/self/task")), file=sys.stderr))
sys.argv = ["stageflow", "plan", "--profile", sys.argv[1], "--devices", "4"]
main()
"""


def test_planning_starts_no_threads_that_spin_beside_it(profile_file: Path) -> None:
    command = [sys.executable, "-c", COUNTED, str(profile_file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr.split() == ["1"]
