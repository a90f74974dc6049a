"""Commands that need no agent: listing, planning, simulating, and every bad input."""

import json
import socket
import time
from pathlib import Path
from unittest.mock import Mock

import pytest

from backend.bootstrap import connect
from backend.profiles.document import write_profile
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from backend.runs.request.spec import TrainSpec
from backend.settings import Settings
from tests.app import seed
from tests.app.test_run import busy_run
from tests.cli.conftest import Command
from tests.ports import free_port

COMMANDS = (
    "up demo worker doctor models profile plan simulate run runs show logs cancel delete export db "
    "backup restore move"
).split()


@pytest.fixture
def profile_file(tmp_path: Path) -> Path:
    layers = tuple(
        Layer(f"layer{i}", "Linear", 0.002, 0.004, 4096, 40_000_000, 0.001) for i in range(4)
    )
    path = tmp_path / "profile.json"
    path.write_bytes(write_profile(Profile("toy", ModelGraph.chain(layers), 8)))
    return path


def readable(text: str) -> bool:
    """An error for people: says so, and shows no traceback."""
    return "Error:" in text and "Traceback" not in text


def test_help_names_every_command(stageflow: Command) -> None:
    said = stageflow("--help")
    assert said.code == 0
    assert all(f" {name} " in said.out for name in COMMANDS)


@pytest.mark.parametrize("command", [c for c in COMMANDS if c != "db"])
def test_help_of_a_command_has_an_example(stageflow: Command, command: str) -> None:
    said = stageflow(command, "--help")
    assert said.code == 0
    assert f"stageflow {command}" in said.out


def test_a_new_home_has_no_runs(stageflow: Command, database: None) -> None:
    assert stageflow("runs", "--json").json == []
    assert "stageflow demo" in stageflow("runs").out


def test_commands_refuse_an_empty_database_with_the_command_that_mends_it(
    stageflow: Command,
) -> None:
    said = stageflow("runs")
    assert said.code == 1
    assert readable(said.err)
    assert "stageflow db upgrade" in said.err


def test_upgrade_is_idempotent_and_current_says_so(stageflow: Command, database: None) -> None:
    again = stageflow("db", "upgrade")
    assert again.code == 0
    now = stageflow("db", "current").out.split()
    assert now[1] == now[-1]


@pytest.mark.parametrize(
    "args",
    [
        ("show", "7"),
        ("logs", "7"),
        ("cancel", "7"),
        ("delete", "7", "--yes"),
        ("export", "7"),
        ("run", "--plan", "7"),
    ],
)
def test_what_does_not_exist_is_said(
    stageflow: Command, database: None, args: tuple[str, ...]
) -> None:
    said = stageflow(*args)
    assert said.code == 1
    assert readable(said.err)
    assert "7" in said.err


def test_doctor_finds_a_missing_database_and_then_none(stageflow: Command) -> None:
    before = stageflow("doctor", "--json")
    assert before.code == 1
    assert stageflow("db", "upgrade").code == 0
    after = stageflow("doctor", "--json", env={"STAGEFLOW_PORT": str(free_port())})
    names = {finding["name"] for finding in after.json}
    assert {"python", "torch", "devices", "port", "redis", "database", "disk", "workers"} <= names
    assert "sandbox" in names
    assert all(finding["ok"] is not False for finding in after.json)


def test_doctor_tells_the_room_of_a_shared_folder(
    stageflow: Command, database: None, tmp_path: Path
) -> None:
    fields = {"STAGEFLOW_PORT": str(free_port()), "STAGEFLOW_SHARED": str(tmp_path / "share")}
    said = stageflow("doctor", "--json", env=fields)
    (disk,) = (finding for finding in said.json if finding["name"] == "disk")
    assert f"free for {tmp_path / 'share'}" in disk["found"]


def test_doctor_says_who_cannot_have_the_port(stageflow: Command, database: None) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = stageflow("doctor", env={"STAGEFLOW_PORT": str(port)})
    assert said.code == 1
    assert str(port) in said.out


@pytest.mark.parametrize("command", [("up",), ("demo", "--no-serve")])
def test_a_port_in_use_is_said_with_another_to_choose(
    stageflow: Command, home: Path, command: tuple[str, ...]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = stageflow(*command, "--port", str(port))
    assert said.code == 1
    assert readable(said.err)
    assert str(port) in said.err
    assert "--port" in said.err


def test_plan_ranks_and_names_layers(stageflow: Command, profile_file: Path) -> None:
    plans = stageflow("plan", "--profile", str(profile_file), "--devices", "2", "--json").json
    best = plans["plans"][0]
    assert [layer for stage in best["stages"] for layer in stage["layers"]] == [
        f"layer{i}" for i in range(4)
    ]
    rates = [plan["samples_per_second"] for plan in plans["plans"]]
    assert rates == sorted(rates, reverse=True)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("levels: [{count: 2, bandwidth: [", "line"),
        ("levels: [{count: two, bandwidth: 1e9}]", "count"),
        ("levels: []", "levels"),
        ("!!python/object/apply:os.system ['true']", ""),
    ],
)
def test_a_broken_cluster_file_is_said(
    stageflow: Command, profile_file: Path, tmp_path: Path, text: str, told: str
) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(text)
    said = stageflow("plan", "--profile", str(profile_file), "--cluster", str(cluster))
    assert said.code == 1
    assert readable(said.err)
    assert told in said.err


def test_a_broken_profile_is_said(stageflow: Command, tmp_path: Path) -> None:
    broken = tmp_path / "profile.json"
    broken.write_text('{"format": "stageflow-profile"')
    for path in (broken, tmp_path / "absent.json"):
        said = stageflow("plan", "--profile", str(path))
        assert said.code == 1
        assert readable(said.err)


def test_a_faulty_variable_is_said(stageflow: Command) -> None:
    said = stageflow("runs", env={"STAGEFLOW_PORT": "many"})
    assert said.code == 1
    assert readable(said.err)
    assert "STAGEFLOW_PORT" in said.err


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("def model(:\n", "line 1"),
        ("import os\n", "model"),
        ("", "empty"),
        ("\x00\x01", ""),
    ],
)
def test_a_file_that_is_no_definition_is_refused_before_anything_runs(
    stageflow: Command, database: None, tmp_path: Path, source: str, told: str
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(source)
    said = stageflow("profile", str(path))
    assert said.code == 1
    assert readable(said.err)
    assert told in said.err
    assert stageflow("runs", "--json").json == []


def test_simulate_reproduces_a_published_bubble_rate(stageflow: Command) -> None:
    """Zero-bubble paper, table 9 and 5: 1.5B, p=8, m=24: 0.2431."""
    said = stageflow(
        *"simulate --schedule 1f1b-flush --positions 8 --microbatches 24".split(),
        *"--forward 18.522e-3 --backward 18.086e-3 --backward-weight 9.337e-3".split(),
        *"--transfer 0.601e-3 --json".split(),
    )
    assert round(said.json["bubble_rate"], 4) == 0.2431
    assert said.json["in_flight"] == [8, 7, 6, 5, 4, 3, 2, 1]


def test_an_unknown_schedule_is_said_with_those_that_there_are(stageflow: Command) -> None:
    said = stageflow(
        *"simulate --schedule best --positions 2 --microbatches 2 --forward 1 --backward 1".split()
    )
    assert said.code == 1
    assert readable(said.err)
    assert "gpipe" in said.err


@pytest.mark.parametrize(
    ("level", "minimum", "code", "told"),
    [
        ("bubblewrap", "bubblewrap", 0, "node-7: bubblewrap"),
        ("limits", "limits", 0, "Install bubblewrap"),
        ("limits", "bubblewrap", 1, "Runs on node-7 are refused"),
    ],
)
def test_doctor_tells_the_sandbox_of_each_node(
    stageflow: Command, database: None, home: Path, level: str, minimum: str, code: int, told: str
) -> None:
    backend = connect(Settings(home=home))
    backend.nodes.beat("node-7", (), {"sandbox": level})
    backend.close()
    fields = {"STAGEFLOW_PORT": str(free_port()), "STAGEFLOW_SANDBOX": minimum}
    said = stageflow("doctor", "--json", env=fields)
    finding = next(found for found in json.loads(said.out) if found["name"] == "sandbox")
    assert said.code == code
    assert told in finding["found"] + finding["advice"]


def test_doctor_tells_of_a_clock_that_is_off(
    stageflow: Command, database: None, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend, right = connect(Settings(home=home)), time.time
    with monkeypatch.context() as wrong:
        wrong.setattr("backend.storage.nodes.nodes.time", Mock(time=lambda: right() - 90))
        backend.nodes.beat("node-7")
    backend.close()
    said = stageflow("doctor", "--json", env={"STAGEFLOW_PORT": str(free_port())})
    finding = next(found for found in json.loads(said.out) if found["name"] == "clocks")
    assert finding["found"].startswith("node-7: clock 1")
    assert finding["found"].endswith("behind")
    assert "NTP" in finding["advice"]


def test_a_run_is_exported_in_every_format(
    stageflow: Command, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAGEFLOW_HOME", str(home))
    backend = seed.fresh()
    found = seed.everything(backend)
    backend.close()
    run = str(found.succeeded)
    assert stageflow("export", run, "--format", "csv").out.startswith('"metric","step"')
    for name in ("json", "parquet", "spans", "trace", "html", "png", "log"):
        file = tmp_path / name
        assert stageflow("export", run, "-f", name, "-o", str(file)).code == 0
        assert file.stat().st_size > 0
    said = stageflow("export", run, "--format", "doc")
    assert readable(said.err)
    assert "parquet" in said.err


def test_an_ended_run_is_deleted_once_it_is_confirmed(stageflow: Command) -> None:
    found = seed.everything(seed.fresh())
    asked = stageflow("delete", str(found.failed))
    assert asked.code == 1
    assert "Delete run" in asked.out + asked.err
    assert stageflow("delete", str(found.failed), "--yes").code == 0
    left = [run["id"] for run in stageflow("runs", "--json").json]
    assert found.failed not in left
    assert found.running in left
    refused = stageflow("delete", str(found.running), "--yes")
    assert refused.code == 1
    assert readable(refused.err)


def test_show_says_what_a_rule_took_away(stageflow: Command) -> None:
    run = str(seed.everything(seed.fresh()).succeeded)
    assert "cleared" not in stageflow("show", run).out
    assert stageflow("project", "retain", "General", "--days", "0", "--last", "0").code == 0
    assert stageflow("project", "clean", "--yes").code == 0
    assert "retention rule deleted the log" in " ".join(stageflow("show", run).out.split())
    assert stageflow("show", run, "--json").json["cleared_at"]


def test_show_says_that_cores_were_shared(stageflow: Command) -> None:
    backend = seed.fresh()
    run = busy_run(backend, seed.everything(backend))
    said = " ".join(stageflow("show", str(run)).out.split())
    assert "cores were shared" in said
    assert "at that share" in said
    assert "asked for optimizer.name momentum" in said
    assert "UTC)" in said  # no figure is as a program writes it
    found = stageflow("show", str(run), "--json").json["expected"]
    assert found["cores"]["taken"] == 0.5
    slower, alone = found["at_share"], found["prediction"]
    assert slower["seconds_per_minibatch"] > alone["seconds_per_minibatch"]


@pytest.mark.parametrize(
    ("weights", "told"),
    [
        ("node:", "names no path"),
        ("run:two", "names no run"),
        ("run:99", "run 99"),
        ("nothing", "no model 'nothing'"),
    ],
)
def test_weights_that_cannot_be_found_are_said(
    stageflow: Command, home: Path, monkeypatch: pytest.MonkeyPatch, weights: str, told: str
) -> None:
    monkeypatch.setenv("STAGEFLOW_HOME", str(home))
    backend = seed.fresh()
    found = seed.everything(backend)
    backend.close()
    said = stageflow("run", "--plan", str(found.plan), "--weights", weights, "--detach")
    assert said.code == 1
    assert readable(said.err)
    assert told in said.err


def test_weights_of_the_node_are_asked_for(
    stageflow: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAGEFLOW_HOME", str(home))
    backend = seed.fresh()
    found = seed.everything(backend)
    command = (
        "run",
        "--plan",
        str(found.plan),
        "--weights",
        "node:llama/base",
        "--weights-partial",
    )
    number = stageflow(*command, "--detach", "--json").json["id"]
    spec = backend.runs.get(number).spec
    backend.close()
    assert isinstance(spec, TrainSpec)
    assert (spec.weights_path, spec.weights_partial) == ("llama/base", True)
