"""The main job as a person starts it: two demos in an empty home, then everything found again."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command, assert_nothing_runs
from tests.ports import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def demo(stageflow: Command, *more: str) -> str:
    port = free_port()
    said = stageflow("demo", "--no-serve", "--port", str(port), *more, timeout=900)
    assert said.code == 0, said.out + said.err
    return said.out


def test_two_demos_in_an_empty_home(stageflow: Command, home: Path) -> None:
    summary = demo(stageflow)
    for told in ("run", "plan", "predicted per minibatch", "measured per minibatch", "accuracy"):
        assert told in summary
    first = stageflow("runs", "--json").json
    assert [run["state"] for run in first] == ["succeeded", "succeeded"]

    trained = first[0]
    assert trained["kind"] == "train"
    assert trained["accuracy"] >= 0.95
    shown = stageflow("show", str(trained["id"]), "--json").json
    check_document(shown)
    assert_nothing_runs(home)
    reached = stageflow("runs", "--metric", "held-out loss", "--most", "1", "--json").json
    assert reached == first[:1]
    assert stageflow("runs", "--metric", "held-out loss", "--least", "1", "--json").json == []

    demo(stageflow, "--epochs", "2")
    both = stageflow("runs", "--json").json
    assert len(both) == 4
    assert both[2:] == first
    assert stageflow("show", str(trained["id"]), "--json").json == shown

    exported = home.parent / "run.json"
    assert stageflow("export", str(trained["id"]), "-o", str(exported)).code == 0
    assert json.loads(exported.read_bytes())["log"]


def check_document(shown: dict) -> None:
    """The plan, the metrics and both timelines of a pipeline run of two processes or more."""
    stages = shown["plan"]["partition"]["stages"]
    assert len(stages) >= 2
    assert all(stage["layers"] for stage in stages)
    assert shown["plan"]["schedule"] == "pipedream"
    losses = [point["value"] for point in shown["metrics"]["loss"]]
    assert sum(losses[-20:]) < sum(losses[:20]) / 5
    assert shown["metrics"]["accuracy"][-1]["value"] == shown["summary"]["accuracy"]
    measured, predicted = shown["timelines"]["measured"], shown["timelines"]["predicted"]
    assert measured["action"] == predicted["action"]
    assert set(measured["rank"]) == set(range(len(stages)))
    assert all(s <= e for s, e in zip(measured["start"], measured["end"], strict=True))
    assert {a["name"] for a in shown["artifacts"]} >= {"model.safetensors"}
