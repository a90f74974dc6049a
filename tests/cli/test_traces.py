"""Traces of a training elsewhere, on the command line."""

from pathlib import Path

from backend.profiles.document import read_profile
from tests.app import seed
from tests.cli.conftest import Command
from tests.unit.profiles.test_traces import rank
from tests.unit.profiles.traces_by_hand import on_a_gpu


def test_a_profile_is_made_of_a_trace_planned_and_kept(stageflow: Command, tmp_path: Path) -> None:
    seeded = seed.everything(seed.fresh())
    step, made = tmp_path / "step.json", tmp_path / "profile.json"
    step.write_bytes(on_a_gpu())
    asked = ("trace", "profile", str(step), "--batch", "32", "-o", str(made))
    found = stageflow(*asked, "--model", "vgg_digits", "--json").json
    assert found["id"] > seeded.profile
    assert [layer.name for layer in read_profile(made.read_bytes()).layers] == ["first", "second"]
    planned = stageflow("plan", "--profile", str(step), "--batch", "32", "--json").json
    assert planned
    (tmp_path / "bad.json").write_text("{}")
    refused = stageflow("trace", "profile", str(tmp_path / "bad.json"))
    assert refused.code == 1
    assert "no trace" in refused.err


def test_a_run_elsewhere_is_laid_beside_its_prediction(stageflow: Command, tmp_path: Path) -> None:
    plan = seed.everything(seed.fresh()).plan
    files = [tmp_path / f"rank{number}.json" for number in range(2)]
    for number, file in enumerate(files):
        file.write_bytes(rank(number, "forward 0", "forward 1", "backward 0", "backward 1"))
    asked = ("trace", "compare", *map(str, files), "--plan", str(plan))
    said = stageflow(*asked).out
    assert "predicted" in said
    assert stageflow(*asked, "--json").json["steps"] == 1
    assert stageflow("trace", "compare", str(tmp_path / "none"), "--plan", str(plan)).code == 1
