"""Data sets of the hub: brought once, whole or not at all; a hub that does not answer is told."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from backend.planning.plan import Partition, Plan, Stage
from backend.runs.request.spec import DataSpec, TrainSpec
from backend.settings import Settings
from workers.supervisor.setup.hub import fetched

PLAN = Plan("even", Partition((Stage(0, 1, (0,)),)), "pipedream", 16)
SPEC = TrainSpec(1, PLAN, data=DataSpec("huggingface", path="somebody/nothing"))
ALONE = """
import sys
from pathlib import Path
from backend.settings import Settings
from tests.unit.workers.supervisor.setup.test_hub import SPEC
from workers.supervisor.setup.hub import HubUnreachable, fetched
try:
    fetched(SPEC, Settings(home=Path(sys.argv[1])), lambda: True)
except HubUnreachable as fault:
    print(fault, "|", fault.advice)
"""


@pytest.mark.slow
def test_a_hub_that_does_not_answer_is_told(tmp_path: Path) -> None:
    closed = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_ETAG_TIMEOUT": "2"}
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(tmp_path)],
        env={**os.environ, **closed, "PYTHONPATH": str(Path(__file__).parents[5])},
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    assert "'somebody/nothing' cannot be downloaded from the Hugging Face hub" in done.stdout
    assert "save_to_disk" in done.stdout
    assert not (tmp_path / "hub" / "somebody" / "nothing").exists()


def test_what_is_there_is_not_brought_again(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    (settings.hub_folder / "somebody" / "nothing").mkdir(parents=True)
    assert fetched(SPEC, settings, goes_on=lambda: False)


def test_runs_that_ask_for_nothing_bring_nothing(tmp_path: Path) -> None:
    assert fetched(TrainSpec(1, PLAN), Settings(home=tmp_path), goes_on=lambda: False)
    assert not (tmp_path / "hub").exists()


@pytest.mark.parametrize(("name", "revision"), [("a/b@9f3c", "9f3c"), ("a/b", None)])
def test_a_revision_is_asked_for_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, revision: str | None
) -> None:
    asked = []

    def download(repository: str, local_dir: Path, **options: object) -> None:
        asked.append((repository, options["revision"]))
        local_dir.mkdir(parents=True)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    spec = replace(SPEC, data=DataSpec("huggingface", path=name))
    assert fetched(spec, Settings(home=tmp_path), goes_on=lambda: True)
    assert asked == [("a/b", revision)]
    assert (tmp_path / "hub" / name).is_dir()
