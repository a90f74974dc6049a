"""What goes wrong around a command: a full disk, a Redis that is away. Earlier runs stay."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from backend.bootstrap import connect
from backend.cluster.presets import local
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from backend.settings import Settings
from tests.app import seed
from tests.cli.conftest import Command

SMALL_DISK = "mount -t tmpfs -o size=3m stageflow"


@pytest.fixture
def plan_id(home: Path, database: None) -> int:
    """A saved plan of a zoo model, as profiling and planning leave it."""
    backend = connect(Settings(home=home))
    definition = backend.definitions.add_zoo("mlp")
    layers = tuple(Layer(f"layer{i}", "Linear", 0.002, 0.004, 4096, 4096) for i in range(4))
    profile = Profile("mlp", ModelGraph.chain(layers), 8)
    profile_id = backend.profiles.add(profile, definition.id)
    number = getattr(profile_id, "id", profile_id)
    saved = backend.plans.save(
        number,
        local(2),
        seed.predicted(profile, local(2))[0],
    )
    backend.close()
    return saved.id


def test_without_redis_a_run_is_kept_and_waits(stageflow: Command, plan_id: int) -> None:
    said = stageflow("run", "--plan", str(plan_id), "--detach")
    assert said.code == 0
    assert "Redis" in said.err
    assert "stored" in said.err
    assert "Traceback" not in said.err
    assert [run["state"] for run in stageflow("runs", "--json").json] == ["queued"]
    number = str(stageflow("runs", "--json").json[0]["id"])
    assert stageflow("cancel", number).code == 0
    assert [run["state"] for run in stageflow("runs", "--json").json] == ["cancelled"]


def test_an_own_redis_that_is_away_is_named_without_its_password(
    stageflow: Command, plan_id: int
) -> None:
    own = {"STAGEFLOW_REDIS_URL": "redis://:secret-word@127.0.0.1:1/0"}
    said = stageflow("run", "--plan", str(plan_id), "--detach", env=own)
    assert said.code == 0
    assert "127.0.0.1:1" in said.err
    assert "secret-word" not in said.out + said.err


def test_a_path_that_no_disk_can_have_is_named(stageflow: Command, database: None) -> None:
    said = stageflow("restore", "a" * 5000)
    assert said.code == 1
    assert said.err.startswith("Error: aaa")
    assert "File name too long" in said.err
    assert "Traceback" not in said.err


def test_a_full_disk_is_said_and_earlier_models_stay(tmp_path: Path) -> None:
    """The home on a disk of 3 MiB: files are added until it is full."""
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(_on_small_disk(small, "true"), check=False, capture_output=True).returncode:
        pytest.skip("this machine lets nobody mount a small disk of their own")
    line = " && ".join(
        [
            "$0 -m app.cli db upgrade",
            "$0 -m app.cli models --add mlp",
            f"{{ cat /dev/zero > {small}/filler 2>/dev/null; true; }}",
            "{ $0 -m app.cli models --add vgg_digits; echo code $?; }",
            f"rm {small}/filler",
            "$0 -m app.cli models --json",
        ]
    )
    done = subprocess.run(
        _on_small_disk(small, line),
        env=os.environ | {"STAGEFLOW_HOME": str(small / "home")},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "code 1" in done.stdout
    assert "Error:" in done.stderr
    assert "full" in done.stderr
    assert "Traceback" not in done.stderr
    assert '"mlp"' in done.stdout


def _on_small_disk(folder: Path, line: str) -> list[str]:
    mounted = f"{SMALL_DISK} {folder} && {line}"
    return ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mounted, sys.executable]


def test_two_saved_plans_are_told_apart(stageflow: Command, home: Path, plan_id: int) -> None:
    backend = connect(Settings(home=home))
    first = backend.plans.get(plan_id)
    profile = backend.profiles.get(first.profile_id).profile
    other = next(
        each
        for each in seed.predicted(profile, local(2))
        if each.plan.partition != first.plan.partition
    )
    second = backend.plans.save(first.profile_id, first.cluster, other, "another cut")
    backend.close()
    told = stageflow("plans", "diff", str(plan_id), str(second.id))
    assert told.code == 0, told.err
    assert f"another cut ({second.id})" in told.out
    assert "The same in both: model," in told.out
    found = stageflow("plans", "diff", str(plan_id), str(second.id), "--json").json
    assert found["names"] == [first.name, "another cut"]
    assert {fact["name"] for fact in found["facts"]} >= {"replicas per stage", "throughput"}
    assert [pair["stage"] for pair in found["stages"]][:1] == [0]
    assert stageflow("plans", "diff", str(plan_id), "99").code == 1
