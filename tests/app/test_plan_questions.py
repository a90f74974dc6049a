"""The Plan page asks what the commands ask: options, long searches, refusals, kept plans."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from threading import Event

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import NumberInput

from app.components.plan import planning_view
from app.formats import plain
from app.queries import planner
from app.queries.background import Background
from app.queries.planner import refined
from app.session.state import Key, Page
from backend.bootstrap import Backend
from backend.cluster.presets import local
from backend.prediction.answer import Reply, rank, replies
from backend.prediction.question import Question
from backend.prediction.watch import Watch
from backend.runs.request.spec import TrainSpec
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import button, figures_of, no_searcher, param, text_of
from tests.searched import killed, killed_at_once

CLUSTER = "local:2"
PAINT = 0.2
"""Of app/views/plan.py, which is a script."""


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Searches are kept for all visitors, cancelled ones too: no later test shall find these."""
    yield
    planner.asked.clear()


def until(page: AppTest, is_so: Callable[[AppTest], bool]) -> AppTest:
    """The page once `is_so`."""
    deadline = time.monotonic() + 240
    while not is_so(page):
        assert time.monotonic() < deadline, text_of(page)
        page.run()
    return page


def waits(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """The page waits so long for first and last answers."""
    for name in ("AT_ONCE", "FIRST", "GRACE"):
        monkeypatch.setattr(planning_view, name, seconds)


def has(label: str) -> Callable[[AppTest], bool]:
    return lambda page: label in [found.label for found in page.button]


def test_a_newcomer_gets_the_best_plan_with_what_it_chose(
    seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.PLAN, cluster=CLUSTER)
    [found] = rank(Question(seed.a_profile(), local(2, None)))
    plan = found.prediction.plan
    text = text_of(page)
    assert next(box.value for box in page.selectbox if box.label == "Planner") == "best"
    assert f"**{plan.partition.label}** · Best" in page.radio[0].options[0]
    assert "| Recomputation | none |" in text
    assert f"{plan.microbatch}" in text


def test_options_are_in_the_link_and_how_many_are_set_is_said(
    seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.PLAN, recompute="always", chunks=99, memory="nonsense", optimizer="adamw")
    text = text_of(page)
    assert "3 options set: adamw, recomputation always, 16 chunks" in text
    assert "of all activations" in text
    field = next(f for f in page.number_input if f.label.startswith("Memory"))
    field.set_value(4.0).run()
    assert param(page, "memory") == str(4 * 2**30)
    assert "4 options set" in text_of(page)
    assert figures_of(page)["Peak memory"][1].endswith("free")


def test_state_in_bfloat16_takes_less_memory_and_is_launched_so(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    asked = {"cluster": CLUSTER, "planner": "straight", "optimizer": "adam"}
    whole = figures_of(open_page(Page.PLAN, **asked))["Peak memory"][0]
    page = open_page(Page.PLAN, **asked, **{"state-precision": "bfloat16"})
    assert "2 options set: adam, state all bfloat16" in text_of(page)
    assert figures_of(page)["Peak memory"][0] != whole
    button(page, "Start run").click().run()
    spec = backend.runs.list(limit=1).runs[0].spec
    assert isinstance(spec, TrainSpec)
    assert (spec.precision, spec.state_precision) == ("bfloat16", "bfloat16")


def test_planners_without_a_plan_are_named_with_advice(
    seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.PLAN, schedule="interleaved", chunks=3)
    text = text_of(page)
    assert "3 stages on each device" in text
    assert "**PipeDream**" in text
    assert "gives a device one stage" in text
    page = open_page(Page.PLAN, schedule="interleaved", planner="straight")
    assert "gives a device one stage" in page.error[0].value
    assert "Other planners" in text_of(page)
    page.radio[0].set_value("best").run()
    assert not page.error
    assert figures_of(page)


def test_all_planners_show_the_fastest(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.PLAN, planner="all", schedule="pipedream")
    first = page.radio[0].options[0]
    assert page.radio[0].value in ("pipedream", "best", "pipedream-2bw", "straight")
    assert first
    assert "· best" in page.radio[0].proto.captions[0]


def test_a_long_search_shows_progress_and_can_be_cancelled(
    seeded: seed.Seeded, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits(monkeypatch, 0.0)
    with no_searcher():  # the search waits for its turn: there is time to cancel it
        page = open_page(Page.PLAN, batch=5)
        assert page.get("progress")
        assert "Planner" in [box.label for box in page.selectbox]
        button(page, "Cancel").click().run()
    until(page, has("Plan again"))
    assert "There was no plan yet" in text_of(page)
    waits(monkeypatch, 60.0)
    button(page, "Plan again").click().run()
    assert figures_of(page)
    assert not page.warning


def test_what_nobody_waits_for_is_ended_and_nothing_else(
    seeded: seed.Seeded, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits(monkeypatch, 0.0)
    with no_searcher():  # searches wait for their turn
        mine = open_page(Page.PLAN, cluster=CLUSTER, batch=9)
        theirs = open_page(Page.PLAN, cluster=CLUSTER, batch=9)
        [search] = searched(mine)
        assert searched(theirs) == [search]
        batch_of(mine).set_value(7).run()
        assert not search.was_cancelled
        batch_of(theirs).set_value(7).run()
        assert search.was_cancelled
        again = open_page(Page.PLAN, cluster=CLUSTER, batch=9)
        assert search not in searched(again)
    for left in {*searched(mine), *searched(theirs), *searched(again)}:
        left.cancel()  # or it has its turn while the next test is on
        assert left.wait(240)


def searched(page: AppTest) -> list[Background[Reply]]:
    """What the page waits for."""
    _, running = page.session_state[Key.PLANNING.value]
    return list(running)


def batch_of(page: AppTest) -> NumberInput:
    return next(field for field in page.number_input if field.label == "Microbatches per update")


def test_what_was_found_before_a_cancel_is_shown_as_such(
    seeded: seed.Seeded, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(question: Question, watch: Watch) -> Iterator[Reply]:
        watch.progress(question.planner, 3, 40)
        while not watch.stop():
            time.sleep(0.01)
        yield from replies(question)

    monkeypatch.setattr(planner, "refined", slow)
    waits(monkeypatch, 0.2)
    page = open_page(Page.PLAN, batch=6)
    button(page, "Cancel").click().run()
    until(page, has("Plan again"))
    said = text_of(page).replace("\u00a0", " ")
    assert "cancelled after 3 of 40 candidates" in said
    assert "best plan found so far" in said
    assert figures_of(page)
    button(page, "Cancel").click().run()  # the others, whom nobody waits for


def test_a_first_answer_is_drawn_while_a_better_one_is_searched(
    seeded: seed.Seeded, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = Event()

    def slow(question: Question, watch: Watch) -> Iterator[Reply]:
        found = refined(question, watch)
        yield next(found)
        ended.wait(240)
        yield from found

    monkeypatch.setattr(planner, "refined", slow)
    waits(monkeypatch, 0.2)
    page = until(open_page(Page.PLAN, cluster=CLUSTER, batch=8), lambda it: bool(figures_of(it)))
    assert page.get("progress")
    assert not page.warning
    remark = "a first answer, the search goes on"
    assert remark in page.title[0].value  # beside it: a second line below would move the page
    assert not any(remark in caption.value for caption in page.caption)
    ended.set()
    waits(monkeypatch, 60.0)
    page.run()
    assert not page.get("progress")
    assert remark not in page.title[0].value
    [best] = rank(Question(seed.a_profile(), local(2, None), batch=8))
    assert f"**{best.prediction.plan.partition.label}** · Best" in page.radio[0].options[0]


def test_figures_that_are_there_at_once_are_drawn_before_the_charts(
    seeded: seed.Seeded, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script stands still once between them, which is when a browser draws."""
    waits(monkeypatch, 60.0)
    open_page(Page.PLAN, cluster=CLUSTER, batch=9)  # now everybody's answer is there at once
    slept, sleep = list[float](), time.sleep
    monkeypatch.setattr(time, "sleep", lambda seconds: (slept.append(seconds), sleep(seconds)))
    page = open_page(Page.PLAN, cluster=CLUSTER, batch=9)
    assert figures_of(page)
    assert slept.count(PAINT) == 1
    page.run()
    assert slept.count(PAINT) == 1  # the same answer is not waited for again


def test_a_search_whose_process_was_killed_is_said_and_begun_again(
    seeded: seed.Seeded, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(planner, "replies", killed)
        page = open_page(Page.PLAN, cluster=CLUSTER, batch=11)
        assert "The process that planned has ended (SIGKILL)" in text_of(page)
        assert "a new process does it" in text_of(page)
        assert "best plan found so far" in text_of(page)
        assert figures_of(page)  # of the first answer
    button(page, "Plan again").click().run()
    assert "has ended" not in text_of(page)
    assert figures_of(page)
    [best] = rank(Question(seed.a_profile(), local(2, None), batch=11))
    assert f"**{best.prediction.plan.partition.label}** · Best" in page.radio[0].options[0]


def test_a_search_that_was_killed_before_it_had_a_plan_is_said_once(
    seeded: seed.Seeded, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(planner, "replies", killed_at_once)
        page = open_page(Page.PLAN, cluster=CLUSTER, planner="straight", batch=12)
        assert text_of(page).count("has ended (SIGKILL)") == 1
        assert "There was no plan yet" in text_of(page)
        assert not figures_of(page)
    button(page, "Plan again").click().run()
    assert figures_of(page)


def test_a_plan_for_another_device_is_only_looked_at(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.PLAN, device="h100")
    assert "No peaks of a device" in page.error[0].value
    page = open_page(Page.PLAN, **{"device": "h100", "measured-on": "v100"})
    assert figures_of(page)
    assert "as on h100, measured on v100" in text_of(page)
    assert "Start run" in [found.label for found in page.button]


def test_profiles_at_other_microbatch_sizes_are_offered(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    half = replace(seed.a_profile(), microbatch=seed.SAMPLES // 2)
    kept = backend.profiles.add(half, seeded.definition)
    page = open_page(Page.PLAN, profile=seeded.profile, also=kept.id)
    chosen = next(box for box in page.multiselect if box.label.startswith("Profiles at"))
    assert chosen.value == [kept.id]
    assert f"also microbatch {half.microbatch}" in text_of(page)


def test_a_kept_plan_opens_as_it_was_until_something_else_is_asked(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.PLAN, recompute="always", cluster=CLUSTER)
    before = figures_of(page)
    button(page, "Save").click().run()
    saved = backend.plans.list()[0]
    assert saved.plan.recompute
    again = open_page(Page.PLAN, plan=saved.id)
    assert figures_of(again) == before
    assert f"saved as {plain(saved.name)}" in "".join(again.radio[0].options)
    box = next(box for box in again.selectbox if box.label == "Planner")
    box.set_value("data-parallel").run()
    assert "plan" not in again.query_params
    assert figures_of(again) != before
