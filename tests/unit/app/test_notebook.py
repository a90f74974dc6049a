"""The notebook's plans are those of the engine; what it shows is legible on light and dark."""

import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest

import stageflow
from app.charts.canvas_page import canvas_page
from app.notebook.figures import INK
from app.notebook.tables import by_columns, table
from backend.cluster.document import read_cluster
from backend.cluster.presets import cluster_a
from backend.errors import InvalidInput
from backend.prediction.answer import by_hand, rank
from backend.prediction.predict import predicted_program
from backend.prediction.question import Question
from backend.profiles.document import write_profile
from tests.unit.planning.published import load

QUICK = {"planner": "straight", "schedule": "1f1b-flush", "microbatches": 8}
STARTS = """
import sys, stageflow
assert not [name for name in sys.modules if name.split(".")[0] in {"app", "backend", "workers"}]
from stageflow import connect, plan, profile, read_profile, simulate
found = plan(read_profile(sys.argv[1]), "cluster-a:1", planner="straight")
found._repr_html_(), found.timeline().page()
assert not {"torch", "streamlit", "sqlalchemy"} & set(sys.modules), "imported before it is needed"
assert dir(stageflow) == sorted(stageflow.__all__)
"""


@pytest.fixture
def vgg(tmp_path: Path) -> Path:
    path = tmp_path / "vgg16.json"
    path.write_bytes(write_profile(load("vgg16")))
    return path


def test_nothing_is_imported_before_it_is_needed(vgg: Path):
    done = subprocess.run(
        [sys.executable, "-c", STARTS, str(vgg)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    with pytest.raises(AttributeError, match="no attribute 'launch'"):
        stageflow.launch  # noqa: B018


@pytest.mark.parametrize("model", ["alexnet", "vgg16", "resnet50"])
@pytest.mark.parametrize("planner", ["straight", "pipedream"])
def test_plans_are_those_of_the_engine_to_the_digit(model, planner):
    profile, cluster = load(model), cluster_a(1)
    found = stageflow.plan(profile, "cluster-a:1", planner=planner, optimizer="adam")
    question = Question(profile, cluster, planner=planner, optimizer="adam")
    (answer,) = rank(question)
    assert found.prediction == answer.prediction
    assert found.answer.reasons == answer.reasons
    other = stageflow.simulate(found, "gpipe", 12)
    assert other.prediction == by_hand(question, other.plan).prediction
    assert (other.plan.schedule, other.plan.batch) == ("gpipe", 12)
    assert other.plan.partition == found.plan.partition


def test_every_planners_plan_is_an_alternative(vgg: Path):
    found = stageflow.plan(vgg, 4, schedule="1f1b-flush")
    everyone = (found, *found.alternatives)
    rates = [each.prediction.samples_per_second for each in everyone]
    assert rates == sorted(rates, reverse=True)
    assert len({each.plan for each in everyone}) == len(everyone) > 2
    last = everyone[-1]
    assert {each.plan for each in (last, *last.alternatives)} == {each.plan for each in everyone}


def test_clusters_are_given_in_every_form(tmp_path: Path, vgg: Path):
    text = "levels:\n  - {count: 2, bandwidth: 12e9}\ndevice: {name: V100}\n"
    file = tmp_path / "servers.yaml"
    file.write_text(text)
    plans = [stageflow.plan(vgg, given, **QUICK) for given in (text, file, read_cluster(text))]
    assert len({each.prediction for each in plans}) == 1
    with pytest.raises(InvalidInput, match="no file 'servers'"):
        stageflow.plan(vgg, "servers")
    assert stageflow.plan(vgg, 2, cut="10x1-41x1").plan.planner == "by-hand"
    with pytest.raises(InvalidInput, match="recompute is 'perhaps'"):
        stageflow.plan(vgg, 2, recompute="perhaps")
    with pytest.raises(InvalidInput, match="updates after every microbatch"):
        stageflow.simulate(plans[0], "pipedream", 4)
    assert stageflow.simulate(plans[0], "pipedream").plan.batch == 1


def test_a_timeline_is_the_pages_canvas_and_a_picture(vgg: Path, tmp_path: Path):
    plan = stageflow.plan(vgg, "cluster-a:1", **QUICK)
    drawn = plan.timeline(16)
    _, timeline = predicted_program(plan.question.profile, plan.question.cluster, plan.plan, 16)
    assert drawn.bars.makespan == pytest.approx(timeline.makespan)
    shown = drawn._repr_mimebundle_()
    source = re.search('srcdoc="(.*?)"', shown["text/html"], re.S)[1]
    assert unescape(source).encode() == drawn.page(framed=True)
    assert "frameElement" not in drawn.page().decode()
    assert shown["image/png"].startswith(b"\x89PNG")
    drawn.save(tmp_path / "a.html")
    drawn.save(tmp_path / "a.png")
    assert (tmp_path / "a.html").read_bytes() == drawn.page()
    assert (tmp_path / "a.png").read_bytes() == shown["image/png"]
    assert b"&lt;b&gt;" in canvas_page(b"", "<b>", "")


def test_what_is_shown_has_no_colour_of_its_own_and_runs_nothing(vgg: Path):
    plan = stageflow.plan(vgg, "cluster-a:1", **QUICK)
    profile = stageflow.read_profile(vgg)
    for html in (plan._repr_html_(), profile._repr_html_(), table(["<a>"], [["<b>"]])):
        assert set(re.findall(r"[; \"]color:([^;\"]*)", html)) <= {"inherit"}
        assert set(re.findall(r"background:([^;\"]*)", html)) <= {"transparent"}
        assert "<a>" not in html
        assert "<script" not in html
    assert "… and 11 more" in profile._repr_html_()
    assert by_columns({"a": [1], "b": [2]}).count("<td") == 2
    assert plan.memory().layout.font.color == profile.costs().layout.font.color == INK
    for background in ("#FFFFFF", "#12161C"):
        assert contrast(INK, background) > 4.1


def contrast(one: str, other: str) -> float:
    """WCAG 2's ratio."""
    dark, light = sorted(luminance(each) for each in (one, other))
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_a_plan_is_taken_away(vgg: Path, tmp_path: Path):
    plan = stageflow.plan(vgg, "cluster-a:1", **QUICK)
    file = tmp_path / "order.csv"
    assert plan.export("csv", file) == file.read_bytes()
    assert b"SPLIT_SPEC" in plan.export("torch")
    with pytest.raises(InvalidInput, match="no form 'onnx'"):
        plan.export("onnx")
    profile = stageflow.read_profile(vgg)
    profile.save(tmp_path / "again.json")
    assert stageflow.read_profile(tmp_path / "again.json").profile == profile.profile


def test_advice_is_told_where_a_notebook_shows_a_traceback():
    assert InvalidInput("wrong", "Do this.").__notes__ == ["Do this."]
    assert not hasattr(InvalidInput("wrong"), "__notes__")


def test_a_plan_keeps_the_order_of_a_file(vgg: Path, tmp_path: Path):
    file = tmp_path / "order.csv"
    file.write_text("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n")
    found = stageflow.plan(stageflow.read_profile(vgg), "cluster-a:1", order=file)
    assert found.plan.kept_order == ("0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1")
    assert (found.plan.schedule, found.plan.batch, found.alternatives) == ("custom", 2, ())
    file.write_text(file.read_text().replace("1F1,", ""))
    with pytest.raises(stageflow.StageflowError, match="comes before its forward"):
        stageflow.plan(stageflow.read_profile(vgg), "cluster-a:1", order=str(file))
