"""Compare schedules: empty, the first few, pairs from a link, added, taken away, impossible."""

import pytest
from streamlit.testing.v1 import AppTest

from app.components.plan import planning_view
from app.components.plan.plan_header import CARRIED
from app.session.state import Page
from backend.bootstrap import Backend
from backend.cluster.cluster import Cluster, Device, Level
from backend.cluster.document import write_cluster
from backend.comparison.pairs import Pair, write_pairs
from backend.people.rights import Role
from backend.pipeline.exchange.text import format_program
from backend.pipeline.lower import lower
from backend.pipeline.schedules.catalog import schedule
from backend.pipeline.shape import Shape
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import button, no_searcher, param, text_of
from tests.app.test_projects import join, signed_in

ORDER = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"
LAYERS = len(seed.a_profile().layers)


def names_of(page: AppTest) -> list[str]:
    return list(page.table[0].value["plan and schedule"])


def test_without_profiles_the_page_leads_to_the_models(backend: Backend, open_page: Open) -> None:
    page = open_page(Page.SCHEDULES)
    assert "No profile yet" in text_of(page)
    assert not page.exception


def test_a_few_schedules_are_there_to_begin_with(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.SCHEDULES)
    names = names_of(page)
    assert len(names) >= 4
    assert any("best" in found.label for found in page.button)
    assert all(name.startswith("1-1 ·") for name in names[:-1])
    assert names[-1].startswith("2 ·")
    text = text_of(page)
    for title in ("Timelines", "Bubble by cause", "Memory over time", "Weight versions"):
        assert title in text
    assert not page.exception
    assert not page.warning


def test_the_best_of_each_column_is_marked(seeded: seed.Seeded, open_page: Open) -> None:
    pairs = write_pairs([Pair("straight", "pipedream"), Pair("even-split", "gpipe", 4)])
    table = open_page(Page.SCHEDULES, pairs=pairs).table[0].value
    assert [cell.startswith("**★") for cell in table["samples"]].count(True) == 1
    assert table["staleness"][1].startswith("**★\u00a0none")
    assert not any(cell.startswith("**") for cell in table["per minibatch"])  # of other samples
    assert "without codecs" not in table
    coded = open_page(Page.SCHEDULES, pairs=pairs, codec="int8").table[0].value
    assert len(coded["without codecs"]) == 2
    assert "×" in table["over data parallel"][0]


def test_an_order_is_found_by_name(seeded: seed.Seeded, open_page: Open) -> None:
    pairs = [Pair("straight", "synthesised", 4), Pair("straight", "zb-h1", 4)]
    page = open_page(Page.SCHEDULES, pairs=write_pairs(pairs))
    assert "synthesised" in names_of(page)[0]
    assert len(names_of(page)) == 2
    assert not page.exception


def test_a_link_names_pairs_of_every_source(seeded: seed.Seeded, open_page: Open) -> None:
    pairs = [
        Pair("even-split", "1f1b-flush", 8),
        Pair(f"plan-{seeded.plan}", "pipedream"),
        Pair(f"5x1-{LAYERS}x1", "gpipe", 2),
    ]
    page = open_page(Page.SCHEDULES, pairs=write_pairs(pairs), microbatches=16)
    assert len(names_of(page)) == 3
    assert "batch 8" in names_of(page)[0]
    assert [n.value for n in page.number_input if n.label == "Microbatches"] == [16]
    stages = next(t.value for t in page.dataframe if "stage 1" in t.value.columns)
    assert "stale" in stages["stage 0"][1].replace("\u00a0", " ")
    assert stages["stage 0"][0].replace("\u00a0", " ") == "1 version"


def test_pairs_are_added_and_taken_away_and_stay_in_the_url(
    seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.SCHEDULES, pairs="pipedream:pipedream:1,even-split:gpipe:4")
    boxes = {box.label: box for box in page.selectbox}
    boxes["Plan"].set_value("straight")
    boxes["Schedule"].set_value("1f1b-flush")
    button(page, "Add the pair").click().run()
    assert len(names_of(page)) == 3
    assert "straight:1f1b-flush:4" in param(page, "pairs")
    page.button(key="pair-even-split:gpipe:4").click().run()
    assert len(names_of(page)) == 2
    assert "even-split" not in param(page, "pairs")


def test_the_same_pair_is_not_added_twice(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.SCHEDULES, pairs="pipedream:pipedream:1")
    boxes = {box.label: box for box in page.selectbox}
    boxes["Plan"].set_value("pipedream")
    boxes["Schedule"].set_value("pipedream")
    button(page, "Add the pair").click().run()
    assert "already" in page.warning[0].value


def test_a_pair_that_cannot_be_is_said_and_the_others_stay(
    seeded: seed.Seeded, open_page: Open
) -> None:
    pairs = f"pipedream:pipedream:1,plan-99:gpipe:4,3x9-{LAYERS}x9:gpipe:4"
    page = open_page(Page.SCHEDULES, pairs=pairs)
    assert len(names_of(page)) == 1
    said = " ".join(warning.value for warning in page.warning)
    assert "plan 99" in said
    assert "18 replicas do not fit on 2 devices" in said


def test_where_nothing_fits_the_page_is_calm(seeded: seed.Seeded, open_page: Open) -> None:
    tiny = write_cluster(Cluster((Level(2, 1e9),), Device("toy", 1000)))
    page = open_page(Page.SCHEDULES, cluster=tiny, pairs="even-split:gpipe:4")
    assert "None of these plans fits" in text_of(page)
    assert not page.exception
    assert not open_page(Page.SCHEDULES, cluster=tiny).exception


def upload(page: AppTest, name: str, text: str) -> AppTest:
    page.file_uploader[0].upload(name, text.encode(), "text/plain")
    return page.run()


def test_an_order_from_a_file_stands_beside_the_others(
    seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.SCHEDULES, pairs="straight:gpipe:4")
    upload(page, "mine.csv", "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n")
    assert names_of(page)[1] == "mine.csv"
    assert len(page.table[0].value) == 2
    assert not page.warning
    assert not page.exception


def test_the_faults_of_an_order_are_said_in_sentences(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.SCHEDULES, pairs="straight:gpipe:4")
    upload(page, "wrong.csv", "0F0,0B0,0F1,0B1\n1F0,1F1,1B1\n")
    assert "rank 1 never" in page.warning[0].value
    assert len(names_of(page)) == 1
    upload(page, "other.txt", "hello")
    assert "is not a computation" in page.error[0].value
    assert not page.exception


def test_an_order_from_a_file_is_kept_as_a_plan(
    seeded: seed.Seeded, backend: Backend, open_page: Open
) -> None:
    page = open_page(Page.SCHEDULES, pairs="straight:gpipe:4")
    upload(page, "mine.csv", "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n")
    button(page, "Keep mine.csv as a plan").click().run()
    assert not page.exception
    kept = backend.plans.list(backend.plans.get(seeded.plan).profile_id)[0]
    assert (kept.name, kept.plan.schedule) == ("mine", "custom")
    assert kept.plan.kept_order == ("0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1")
    button(page, "Keep mine.csv as a plan").click().run()
    assert "mine" in page.error[0].value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0F0,0B0,0F1,0B1\n1F0,1F1,1B1\n", "unsound"),
        ("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n" + "x" * 2**23, "larger than"),
    ],
)
def test_an_order_that_no_run_repeats_is_not_kept(
    seeded: seed.Seeded, open_page: Open, text: str, reason: str
) -> None:
    page = open_page(Page.SCHEDULES, pairs="straight:gpipe:4")
    upload(page, "mine.csv", text)
    keep = button(page, "Keep mine.csv as a plan")
    assert (keep.disabled, reason in keep.help) == (True, True), keep.help


def test_an_order_that_never_drains_is_not_kept(seeded: seed.Seeded, open_page: Open) -> None:
    """One microbatch after the other, said to be PipeDream's, which keeps several in flight."""
    shape = Shape((1, 1), 4, 1)
    program = lower(schedule("gpipe"), shape)
    text = format_program(program).replace("schedule gpipe", "schedule pipedream")
    page = open_page(Page.SCHEDULES, pairs="straight:gpipe:4")
    upload(page, "mine.txt", text)
    keep = button(page, "Keep mine.txt as a plan")
    assert keep.disabled
    assert "one batch of a schedule that drains" in keep.help


def test_an_order_on_a_device_that_nobody_measured_is_not_kept(
    seeded: seed.Seeded, backend: Backend, open_page: Open
) -> None:
    there = {"device": "h100", "measured-on": "v100"}
    page = open_page(Page.SCHEDULES, pairs="straight:gpipe:4", **there)
    upload(page, "mine.csv", ORDER)
    keep = button(page, "Keep mine.csv as a plan")
    assert (keep.disabled, keep.help) == (True, CARRIED)
    assert names_of(page)[1] == "mine.csv"  # it is compared all the same


def test_a_viewer_keeps_no_order(
    seeded: seed.Seeded, backend: Backend, monkeypatch: pytest.MonkeyPatch, open_page: Open
) -> None:
    signed_in(backend, monkeypatch, join(backend, "Vera", Role.VIEWER))
    page = open_page(Page.SCHEDULES, pairs="straight:gpipe:4")
    upload(page, "mine.csv", ORDER)
    keep = button(page, "Keep mine.csv as a plan")
    assert keep.disabled
    assert "right to edit" in keep.help


def test_every_planner_can_be_compared_and_interleaving_is_real(
    seeded: seed.Seeded, open_page: Open
) -> None:
    pairs = "best::4,avgpipe::4,best:interleaved:4,pipedream:interleaved:4"
    page = open_page(Page.SCHEDULES, pairs=pairs, chunks=3)
    names = names_of(page)
    assert len(names) == 3
    assert "interleaved" in names[2]
    assert "3 chunks" in names[2]
    assert "gives a device one stage" in page.warning[0].value
    assert "1 option set: 3 chunks" in text_of(page)


def test_a_v_is_compared_like_any_other(seeded: seed.Seeded, open_page: Open) -> None:
    pairs = "pipedream-2bw:zb-v:8,pipedream-2bw:interleaved:8,best:v-half:8"
    page = open_page(Page.SCHEDULES, pairs=pairs)
    assert [name.count("chunks") for name in names_of(page)] == [1, 1, 1]
    held = next(t.value for t in page.dataframe if "stage 3" in t.value.columns)
    assert len(held) == 3
    assert not page.exception
    assert not page.warning


def test_a_pair_whose_chunks_cannot_be_leaves_the_others(
    seeded: seed.Seeded, open_page: Open
) -> None:
    pairs = write_pairs([Pair("best", "zb-v", 4), Pair("even-split", "gpipe", 4)])
    page = open_page(Page.SCHEDULES, pairs=pairs, chunks=3)
    assert len(names_of(page)) == 1
    assert "'zb-v' has 2 chunks on each device, not 3" in page.warning[0].value
    assert not page.exception


def test_it_begins_with_pairs_that_fit(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.SCHEDULES, memory=9 * 2**20)
    names = names_of(page)
    assert not page.warning
    [two_bw] = [name for name in names if "2bw" in name]
    assert two_bw.startswith("2 ·"), "the pipeline's cut is too large for it, another plan is not"
    assert [name for name in names if name.startswith("1-1 ·")]


def test_pairs_that_take_long_show_progress(
    seeded: seed.Seeded, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning_view, "AT_ONCE", 0.0)
    with no_searcher():
        page = open_page(Page.SCHEDULES, pairs="best::7,straight:gpipe:7")
        assert page.get("progress")
        assert not page.table
    monkeypatch.setattr(planning_view, "AT_ONCE", 60.0)
    assert len(names_of(page.run())) == 2, text_of(page)
