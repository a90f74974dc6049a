"""`stageflow program`: every form out and in, faults as sentences and exit code 1."""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from backend.prediction.predict import predict
from backend.profiles.document import write_profile
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from tests.app import seed


@pytest.fixture
def profile_file(tmp_path: Path) -> Path:
    layers = tuple(Layer(f"layer{n}", "Linear", 1e-3, 2e-3, 10**6, 10**7) for n in range(4))
    path = tmp_path / "profile.json"
    path.write_bytes(write_profile(Profile("toy", ModelGraph.chain(layers), 8)))
    return path


@pytest.mark.parametrize("form", ["text", "json", "csv", "trace"])
def test_a_schedule_goes_out_and_comes_back(stageflow, tmp_path: Path, form: str):
    file = tmp_path / form
    asked = "--schedule zb-h1 --positions 3 --microbatches 4".split()
    assert stageflow("program", "export", *asked, "-f", form, "-o", str(file)).code == 0
    found = stageflow("program", "import", str(file), "--json").json
    assert (found["positions"], found["microbatches"], found["faults"]) == (3, 4, [])
    assert found["makespan"] == pytest.approx(18.0)


def test_a_broken_order_is_told_in_sentences(stageflow, tmp_path: Path):
    text = stageflow("program", "export", "--positions", "2", "--microbatches", "2").out
    file = tmp_path / "broken.txt"
    file.write_text(text.replace("0F0@0 ", ""))
    said = stageflow("program", "import", str(file))
    assert said.code == 1
    assert "rank 0 never runs 0F0" in said.out
    told = stageflow("program", "import", str(file), "--json")
    assert told.code == 1
    assert json.loads(told.out)["faults"][0]["rank"] == 0


def test_the_costs_of_a_profile(stageflow, profile_file: Path, tmp_path: Path):
    file = tmp_path / "order.csv"
    stageflow("program", "export", "--positions", "2", "-f", "csv", "-o", str(file))
    found = stageflow(
        "program", "import", str(file), "--profile", str(profile_file), "--devices", "2", "--json"
    ).json
    assert found["prediction"]["samples_per_second"] > 0
    assert stageflow("program", "import", str(tmp_path / "none.txt")).code == 1


def test_a_schedule_has_no_layers_for_another_trainer(stageflow):
    said = stageflow("program", "export", "--format", "megatron")
    assert said.code == 1
    assert "Give a kept plan: --plan 1." in said.err


def test_an_order_is_found_for_a_plan(
    stageflow, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("STAGEFLOW_HOME", str(home))
    with closing(seed.fresh()) as backend:
        other = backend.plans.get(seed.everything(backend).plan)
        profile = backend.profiles.get(other.profile_id).profile
        split = replace(other.plan, schedule="zb-h1", batch=4)
        found = predict(profile, other.cluster, split)
        kept = backend.plans.save(other.profile_id, other.cluster, found)
    file = tmp_path / "order.csv"
    asked = ("program", "synthesise", "--plan")
    told = stageflow(*asked, str(kept.id), "-o", str(file), "--json").json
    assert told["times_as_fast"] >= 1.0
    assert told["times_as_fast"] == pytest.approx(told["best_seconds"] / told["seconds"])
    assert stageflow("program", "import", str(file), "--json").json["faults"] == []
    said = stageflow(*asked, str(other.id))
    assert (said.code, "is not one straight pipeline with a flush" in said.err) == (1, True)
