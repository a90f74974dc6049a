"""The plan by hand: typed, linked, undone, kept, and what does not fit."""

import pytest
from streamlit.testing.v1 import AppTest

from app.components.partition import draft
from app.formats import seconds
from app.session import state
from app.session.state import Page, Param
from backend.bootstrap import Backend
from backend.cluster.cluster import Cluster, Device, Level
from backend.cluster.document import write_cluster
from backend.cluster.presets import local
from backend.planning.cuts import BY_HAND, read_cut
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.predict import predict
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import button, figures_of, param, text_of
from tests.unit.profiles.test_traces import rank

LAYERS = len(seed.a_profile().layers)
CUT = f"5x1-{LAYERS}x1"


def type_cut(page: AppTest, stops: str, replicas: str) -> AppTest:
    fields = {field.label: field for field in page.text_input}
    fields["Cut behind layer number"].set_value(stops)
    fields["Replicas of each stage"].set_value(replicas)
    return button(page, "Apply").click().run()


def type_codecs(page: AppTest, codecs: str) -> AppTest:
    next(f for f in page.text_input if f.label == "Codec of each cut").set_value(codecs)
    return button(page, "Apply").click().run()


def codecs_in(page: AppTest) -> str:
    return param(page, "codecs") if "codecs" in page.query_params else ""


def cut_in(page: AppTest) -> str:
    return param(page, "cut") if "cut" in page.query_params else ""


def test_a_typed_cut_has_its_own_prediction_and_is_in_the_url(
    seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.PLAN, planner="even-split")
    before = figures_of(page)["Throughput, samples"]
    page = type_cut(page, "5", "1, 1")
    assert cut_in(page) == CUT
    assert figures_of(page)["Throughput, samples"] != before
    assert any("Edited by hand" in option for option in page.radio[0].options)
    assert not page.exception


def test_a_link_with_a_cut_shows_the_same(seeded: seed.Seeded, open_page: Open) -> None:
    page = type_cut(open_page(Page.PLAN), "5", "1, 1")
    again = open_page(Page.PLAN, cut=cut_in(page))
    assert figures_of(again) == figures_of(page)
    link = next(code.value for code in again.code if "/plan?" in code.value)
    assert f"cut={CUT}" in link
    assert f"profile={seeded.profile}" in link


def test_changes_are_undone_redone_and_reset(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.PLAN)
    assert button(page, "Undo").disabled
    page = type_cut(page, "5", "1, 1")
    page = type_cut(page, "6", "1, 1")
    button(page, "Undo").click().run()
    assert cut_in(page) == CUT
    button(page, "Undo").click().run()
    assert cut_in(page) == ""
    button(page, "Redo").click().run()
    button(page, "Redo").click().run()
    assert cut_in(page) == f"6x1-{LAYERS}x1"
    assert button(page, "Redo").disabled
    button(page, "Reset").click().run()
    assert cut_in(page) == ""
    button(page, "Undo").click().run()
    assert cut_in(page) == f"6x1-{LAYERS}x1"


def test_what_cannot_be_is_said_and_what_was_typed_stays(
    seeded: seed.Seeded, open_page: Open
) -> None:
    page = type_cut(open_page(Page.PLAN), "5, 7", "1, 1, 1")
    assert "3 replicas do not fit on 2 devices" in page.warning[0].value
    fields = {field.label: field.value for field in page.text_input}
    assert fields["Replicas of each stage"] == "1, 1, 1"
    assert cut_in(page) == ""
    page = type_cut(page, "five", "1, 1")
    assert "whole numbers" in page.warning[0].value
    page = type_cut(page, "5", "1, 1")
    assert not page.warning


def test_a_cut_that_the_link_breaks_leaves_the_planners(
    seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.PLAN, cut="nonsense")
    assert "nonsense" in page.error[0].value
    assert figures_of(page)
    assert not page.exception


def test_too_much_memory_is_said_and_the_editor_stays(seeded: seed.Seeded, open_page: Open) -> None:
    peaks = sorted((max(memory(stop)), stop) for stop in range(1, LAYERS))
    limit = (peaks[0][0] + peaks[-1][0]) / 2
    fits, over = peaks[0][1], peaks[-1][1]
    tight = write_cluster(Cluster((Level(2, 1e9),), Device("toy", limit)))
    asked = {"planner": "pipedream", "schedule": "pipedream", "recompute": "never"}
    page = open_page(Page.PLAN, cluster=tight, cut=f"{over}x1-{LAYERS}x1", **asked)
    assert "too much" in page.error[0].value
    assert not [found for found in page.button if found.label == "Save"]
    page = type_cut(page, str(fits), "1, 1")
    assert not page.error
    assert figures_of(page)["Peak memory"][1].endswith("free")


def memory(stop: int) -> tuple[float, ...]:
    """Peak bytes per stage of the two stages that are cut there."""
    cut = Partition((Stage(0, stop, (0,)), Stage(stop, LAYERS, (1,))))
    plan = Plan(BY_HAND, cut, "pipedream", seed.SAMPLES)
    return predict(seed.a_profile(), local(2), plan).memory_bytes


def test_a_plan_by_hand_is_kept_by_name_and_opens_again(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    page = type_cut(open_page(Page.PLAN), "5", "1, 1")
    shown = figures_of(page)
    next(field for field in page.text_input if field.label == "Name").set_value("mine")
    button(page, "Save").click().run()
    saved = backend.plans.list()[0]
    assert (saved.name, saved.plan.planner) == ("mine", BY_HAND)
    again = open_page(Page.PLAN, plan=saved.id)
    assert cut_in(again) == CUT
    assert figures_of(again) == shown
    assert "2 plans" in text_of(again).replace("\u00a0", " ")


def test_choosing_a_planner_ends_the_edit_and_undo_brings_it_back(
    seeded: seed.Seeded, open_page: Open
) -> None:
    page = type_cut(open_page(Page.PLAN), "5", "1, 1")
    page.radio[0].set_value("even-split").run()
    assert cut_in(page) == ""
    assert param(page, "planner") == "even-split"
    button(page, "Undo").click().run()
    assert cut_in(page) == CUT


def test_every_alternative_says_what_decides_it(seeded: seed.Seeded, open_page: Open) -> None:
    radio = open_page(Page.PLAN).radio[0]
    captions = radio.proto.captions
    assert len(captions) == len(radio.options)
    assert all("bottleneck" in caption or "device" in caption for caption in captions)


def test_traces_of_a_run_elsewhere_are_drawn_above_the_prediction(
    seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.PLAN, plan=seeded.plan)
    (upload,) = [each for each in page.file_uploader if each.label == "Traces"]
    names = ("forward 0", "forward 1", "backward 0", "backward 1")
    files = [(f"rank{n}.json", rank(n, *names), "application/json") for n in range(2)]
    upload.set_value(files).run()
    text = text_of(page)
    assert "Thick bars: measured; thin bars: predicted" in text
    assert "bubble" in text
    (table,) = [each.value for each in page.dataframe if "waiting, predicted" in each.value]
    assert list(table["computed"]) == [seconds(200e-6)] * 2
    assert not page.exception


def test_a_trace_that_is_none_is_refused_on_the_page(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.PLAN, plan=seeded.plan)
    (upload,) = [each for each in page.file_uploader if each.label == "Traces"]
    upload.upload("rank0.json", b"{}", "application/json").run()
    assert "no trace" in text_of(page)
    assert not page.exception


THREE = f"4x1-8x1-{LAYERS}x1"


def test_each_cut_has_the_codec_that_is_typed(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.PLAN, cluster="local:3", schedule="pipedream", cut=THREE)
    plain = figures_of(page)
    page = type_codecs(page, "int8, none")
    assert not page.warning
    assert (cut_in(page), codecs_in(page)) == (THREE, "int8, none")
    assert figures_of(page) != plain
    link = next(code.value for code in page.code if "/plan?" in code.value)
    assert "codecs=int8" in link
    next(field for field in page.text_input if field.label == "Name").set_value("coded")
    button(page, "Save").click().run()
    saved = backend.plans.list()[0]
    assert (saved.plan.planner, saved.plan.codecs) == (BY_HAND, ("int8", ""))
    again = open_page(Page.PLAN, plan=saved.id)
    assert (cut_in(again), codecs_in(again)) == (THREE, "int8,none")
    assert f"plan {saved.id}" in text_of(again)
    assert "plan" in type_codecs(again, "int8,bf16").query_params
    button(again, "Undo").click().run()
    assert codecs_in(again) == "int8,none"
    button(again, "Reset").click().run()
    assert (cut_in(again), codecs_in(again)) == ("", "")


def test_codecs_that_do_not_fit_the_cuts_are_said(seeded: seed.Seeded, open_page: Open) -> None:
    asked = {"cluster": "local:3", "schedule": "pipedream", "cut": THREE}
    page = type_codecs(open_page(Page.PLAN, **asked), "int8,none,bf16")
    assert "3 codecs, and the plan has 2 cuts" in page.warning[0].value
    page = type_codecs(page, "zip")
    assert "no codec 'zip'" in page.warning[0].value
    assert codecs_in(page) == ""
    linked = open_page(Page.PLAN, **asked, codecs="int8,int8,int8")
    assert "3 codecs, and the plan has 2 cuts" in linked.error[0].value
    assert figures_of(linked)


def test_a_drag_keeps_the_codecs_while_there_are_as_many_cuts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url, said = {Param.CODECS: "int8,none"}, list[str]()
    monkeypatch.setattr(state, "text", lambda param: url.get(param, ""))
    monkeypatch.setattr(state, "put", url.__setitem__)
    monkeypatch.setattr(state, "notify", said.append)
    shown = read_cut(THREE, Partition((Stage(0, LAYERS, (0, 1, 2)),)), 3)
    draft.change(shown, shown, 3, [4, 9, LAYERS], [1, 1, 1])
    assert (url[Param.CUT], url[Param.CODECS]) == (f"4x1-9x1-{LAYERS}x1", "int8,none")
    draft.change(shown, shown, 3, [9, LAYERS], [1, 2])
    assert (url[Param.CODECS], len(said)) == ("", 1)


def test_a_depth_that_the_schedule_does_not_take_is_said(
    seeded: seed.Seeded, open_page: Open
) -> None:
    asked = {"planner": "even-split", "schedule": "pipedream", "run-ahead": 2}
    page = type_cut(open_page(Page.PLAN, **asked), "5", "1, 1")
    assert "run ahead 2" in text_of(page)
    assert not page.error
    drains = open_page(Page.PLAN, **{**asked, "schedule": "gpipe"})
    assert "takes no further microbatches in flight" in drains.error[0].value
