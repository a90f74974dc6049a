"""Start: the steps with what is done of them, and the example by one click."""

import time

from app.components.run.tour_view import guide
from app.example import Tour
from app.session.state import Page
from backend.bootstrap import Backend
from backend.runs.request.spec import ProfileSpec, TrainSpec
from backend.runs.run import RunSummary
from backend.runs.states import RunState
from backend.services.runs.attempt import Attempt
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import button, text_of

LIMIT = 60.0  # seconds


def test_the_first_visit_is_shown_the_way(backend: Backend, open_page: Open) -> None:
    page = open_page(Page.HOME)
    assert page.title[0].value == "Start"
    assert text_of(page).count("next]") == 1
    assert "done]" not in text_of(page)
    assert not button(page, "Run the example").disabled


def test_what_is_done_is_marked(seeded: seed.Seeded, open_page: Open) -> None:
    assert text_of(open_page(Page.START)).count("done]") == 4


def test_one_click_asks_for_the_first_run_and_cancel_ends_it(
    backend: Backend, open_page: Open
) -> None:
    page = open_page(Page.START)
    button(page, "Run the example").click().run()
    tour = guide(backend.settings.sql_url).tour
    assert tour is not None
    button(page, "Cancel").click().run()
    assert tour.wait(LIMIT)
    (run,) = backend.runs.list().runs
    assert (run.kind, run.state) == ("profile", RunState.CANCELLED)
    assert button(page.run(), "Run the example again")


def test_the_example_goes_from_profile_to_training_by_itself(backend: Backend) -> None:
    tour = Tour(backend)
    profile = _claimed(backend)
    assert isinstance(profile.run.spec, ProfileSpec)
    profile.finish(RunState.SUCCEEDED, RunSummary(profile_id=profile.profile(seed.a_profile())))
    training = _claimed(backend)
    assert isinstance(training.run.spec, TrainSpec)
    assert len(training.run.spec.plan.partition.stages) == 2
    assert tour.is_running
    training.finish(RunState.SUCCEEDED, RunSummary(accuracy=0.98))
    assert tour.wait(LIMIT)
    assert tour.runs == [profile.run.id, training.run.id]


def test_a_failed_profile_ends_the_example(backend: Backend) -> None:
    tour = Tour(backend)
    _claimed(backend).finish(RunState.FAILED, RunSummary())
    assert tour.wait(LIMIT)
    assert len(tour.runs) == 1


def _claimed(backend: Backend) -> Attempt:
    """The run that waits, taken over as an agent takes it."""
    deadline = time.monotonic() + LIMIT
    while not backend.dispatch.waiting_for("here"):
        assert time.monotonic() < deadline, "nothing was asked for"
        time.sleep(0.05)
    return seed.claim(backend, backend.runs.get(backend.dispatch.waiting_for("here")[0]))
