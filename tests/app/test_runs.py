"""Runs: empty, one in every state, filters, order, columns, picking and acting on several."""

import pytest
from streamlit.testing.v1 import AppTest

from app.session.state import Page
from backend.bootstrap import Backend
from backend.runs.history.labels import Change
from backend.runs.history.listing import RunFilter
from backend.runs.request.spec import ProfileSpec
from backend.runs.states import RunState
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import button, param, text_of


def rows(text: str) -> int:
    """How many runs the table shows (each has one cell that begins with its age)."""
    return sum(line.startswith(":gray[") and "now" in line for line in text.splitlines())


def pick(page: AppTest, *run_ids: int) -> AppTest:
    for run_id in run_ids:
        page.checkbox(key=f"pick-{run_id}").check().run()
    return page


def test_without_runs_the_page_says_how_to_get_one(backend: Backend, open_page: Open) -> None:
    page = open_page(Page.RUNS)
    assert "No run yet" in text_of(page)
    assert "stageflow up" in page.warning[0].value


def test_every_state_has_its_row(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.RUNS)
    text = text_of(page)
    for state in ("queued", "running", "succeeded", "failed", "cancelled"):
        assert state in text
    assert "96.8\u00a0%" in text
    assert not page.warning  # a node is alive
    assert not page.exception


def test_filters_narrow_the_list(seeded: seed.Seeded, open_page: Open) -> None:
    """That they are in the URL, too, is Streamlit's binding, which needs a browser."""
    page = open_page(Page.RUNS)
    assert rows(text_of(page)) == 6
    page.pills[0].set_value(["failed", "queued"]).run()
    assert rows(text_of(page)) == 2
    page.text_input[0].set_value("broken").run()
    assert rows(text_of(page)) == 1
    page.segmented_control[0].set_value("profile").run()
    assert "No run matches" in text_of(page)


def test_the_filters_behind_the_button(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    backend.labels.change([seeded.failed], Change(starred=True, add=("baseline",)))
    page = open_page(Page.RUNS)
    page.selectbox(key="tag").set_value("baseline").run()
    assert rows(text_of(page)) == 1
    page.selectbox(key="tag").set_value(None).run()
    page.toggle(key="starred").set_value(True).run()
    assert rows(text_of(page)) == 1
    page.toggle(key="starred").set_value(False).run()
    page.number_input(key="accuracy-from").set_value(95.0).run()
    assert rows(text_of(page)) == 1
    page.number_input(key="accuracy-from").set_value(None).run()
    page.selectbox(key="choose-plan").set_value(str(seeded.plan)).run()
    assert rows(text_of(page)) == 5
    assert param(page, "plan") == str(seeded.plan)


def test_runs_are_found_by_any_metric(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.RUNS)
    assert page.selectbox(key="metric").options == ["accuracy", "f1", "loss"]
    page.selectbox(key="metric").set_value("f1").run()
    assert rows(text_of(page)) == 1
    page.number_input(key="metric-from").set_value(0.96).run()
    assert "No run matches" in text_of(page)
    page.number_input(key="metric-from").set_value(None).run()
    page.number_input(key="metric-to").set_value(0.96).run()
    assert rows(text_of(page)) == 1


def test_a_link_to_the_runs_of_a_model_is_obeyed(seeded: seed.Seeded, open_page: Open) -> None:
    assert rows(text_of(open_page(Page.RUNS, definition=seeded.definition))) == 6
    assert "No run matches" in text_of(open_page(Page.RUNS, definition=77))


def test_headings_sort_and_the_url_says_so(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.RUNS)
    button(page, "Accuracy").click().run()
    assert param(page, "sort") == "accuracy"
    first = next(box.key for box in page.checkbox if (box.key or "").startswith("pick-"))
    assert first == "pick-page"
    order = [box.key for box in page.checkbox if (box.key or "").startswith("pick-")]
    assert order[1] == f"pick-{seeded.succeeded}"
    button(page, "Accuracy ↓").click().run()
    assert param(page, "order") == "asc"
    button(page, "Run").click().run()
    assert param(page, "sort") == "name"
    assert button(page, "Run ↑")
    button(page, "Created").click().run()
    assert "sort" not in page.query_params


def test_columns_can_be_chosen(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.RUNS)
    assert "1,322/s" not in text_of(page)
    page.pills[1].set_value(["Throughput", "Node"]).run()
    text = text_of(page)
    assert "1,322/s" in text
    assert "succeeded" not in [line.strip() for line in text.splitlines()]


def test_many_runs_are_paged(backend: Backend, open_page: Open) -> None:
    definition = backend.definitions.add_zoo("mlp")
    for number in range(23):
        run = backend.runs.submit(ProfileSpec(definition.id), f"number {number}")
        backend.runs.cancel(run.id)
    page = open_page(Page.RUNS)
    assert rows(text_of(page)) == 20
    page.pagination[0].set_value(2).run()
    assert rows(text_of(page)) == 3


def test_picked_runs_can_be_compared(seeded: seed.Seeded, open_page: Open) -> None:
    page = pick(open_page(Page.RUNS), seeded.succeeded)
    assert button(page, "Compare").disabled
    pick(page, seeded.running, seeded.profiled)
    assert "3 selected" in text_of(page)
    button(page, "Compare").click().run()
    assert page.title[0].value == "Compare"
    assert param(page, "runs") == f"{seeded.succeeded},{seeded.running}"


def test_only_valid_states_are_acted_on(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    page = pick(open_page(Page.RUNS), seeded.succeeded, seeded.failed, seeded.queued)
    assert "The other 2 are left as they are" in text_of(page)
    button(page, "Cancel 1\u00a0run").click().run()
    assert backend.runs.get(seeded.queued).state is RunState.CANCELLED
    assert backend.runs.get(seeded.succeeded).state is RunState.SUCCEEDED
    assert "selected" not in text_of(page)


def test_failed_runs_are_retried_as_new_ones(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    page = pick(open_page(Page.RUNS), seeded.failed, seeded.running)
    button(page, "Retry 1\u00a0run").click().run()
    newest = backend.runs.list(limit=1).runs[0]
    assert (newest.origin_id, newest.state) == (seeded.failed, RunState.QUEUED)
    assert newest.spec == backend.runs.get(seeded.failed).spec


def test_only_ended_runs_are_deleted(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    page = pick(open_page(Page.RUNS), seeded.failed, seeded.running)
    assert "gone for good" in text_of(page)
    button(page, "Delete 1\u00a0run").click().run()
    assert [run.id for run in backend.runs.several([seeded.failed, seeded.running])] == [
        seeded.running
    ]
    assert "5\u00a0runs" in text_of(page)


def test_a_run_is_deleted_on_its_page_once_it_has_ended(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    live = open_page(Page.RUN, id=seeded.running)
    assert not [found for found in live.button if found.label == "Delete the run"]
    page = open_page(Page.RUN, id=seeded.succeeded)
    button(page, "Delete the run").click().run()
    assert page.title[0].value == "Runs"
    assert not backend.runs.several([seeded.succeeded])


def test_stars_and_tags_of_several(backend: Backend, seeded: seed.Seeded, open_page: Open) -> None:
    ids = (seeded.failed, seeded.succeeded)
    page = pick(open_page(Page.RUNS), *ids)
    button(page, "Star").click().run()
    starred = backend.runs.list(RunFilter(starred=True)).runs
    assert {run.id for run in starred} == set(ids)
    page.text_input(key="new-tag").set_value("digits")
    button(page, "Add").click().run()
    assert backend.runs.list(RunFilter(tag="digits")).total == 2
    button(page, "Remove “digits”").click().run()
    assert backend.labels.tags() == []
    button(page, "Clear").click().run()
    assert "selected" not in text_of(page)


def test_all_of_a_page_are_picked_at_once(seeded: seed.Seeded, open_page: Open) -> None:
    page = open_page(Page.RUNS)
    page.checkbox(key="pick-page").check().run()
    assert "6 selected" in text_of(page)
    page.checkbox(key="pick-page").uncheck().run()
    assert "selected" not in text_of(page)


@pytest.mark.parametrize("url", [{"sort": "nonsense"}, {"order": "x"}, {"columns": "Nothing"}])
def test_a_link_that_means_nothing_shows_the_usual(
    seeded: seed.Seeded, open_page: Open, url: dict[str, str]
) -> None:
    page = open_page(Page.RUNS, **url)
    assert not page.error
    assert rows(text_of(page)) == 6


def test_an_agent_that_fell_silent_is_named(backend: Backend, open_page: Open) -> None:
    seed.everything(backend, node_alive=False)
    assert "stageflow worker" in open_page(Page.RUNS).warning[0].value


def test_the_first_visit_lands_on_the_runs_once_there_are_any(
    backend: Backend, open_page: Open
) -> None:
    assert open_page(Page.HOME).title[0].value == "Start"
    seed.everything(backend)
    assert open_page(Page.HOME).title[0].value == "Runs"


def test_a_view_is_kept_and_opened_again(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.RUNS)
    page.pills[0].set_value(["failed"]).run()
    next(f for f in page.text_input if f.placeholder == "a name").set_value("what failed")
    button(page, "Save").click().run()
    assert not page.exception
    (kept,) = backend.views.list()
    assert (kept.name, kept.view.wanted.states) == ("what failed", (RunState.FAILED,))
    page = open_page(Page.RUNS)
    assert rows(text_of(page)) == 6
    button(page, "what failed").click().run()
    assert rows(text_of(page)) == 1
    page.button(key=f"delete-view-{kept.id}").click().run()
    assert not page.exception
    assert not backend.views.list()


def test_a_run_is_commented_on_its_page(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.RUN, id=seeded.failed)
    page.text_area[-1].set_value("the rate was *too* high")
    button(page, "Comment").click().run()
    assert not page.exception
    (said,) = backend.comments.list(seeded.failed)
    assert r"the rate was \*too\* high" in text_of(page)
    page.button(key=f"delete-comment-{said.id}").click().run()
    assert not backend.comments.list(seeded.failed)
