"""The log of a run in a page: read on from where it stopped, bounded, searched."""

import time

from app.components.run.log_view import KEPT
from app.session.state import Page
from backend.bootstrap import Backend
from backend.runs.request.spec import ProfileSpec
from backend.runs.run import RunSummary
from backend.runs.states import RunState
from backend.services.runs.attempt import Attempt
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import button, text_of


def an_attempt(backend: Backend) -> Attempt:
    definition = backend.definitions.add_zoo("mlp")
    return seed.claim(backend, backend.runs.submit(ProfileSpec(definition.id)))


def write(attempt: Attempt, first: int, stop: int) -> None:
    attempt.logs([(0, time.time(), f"line {number} of it") for number in range(first, stop)])


def test_new_lines_are_added_to_those_that_were_read(backend: Backend, open_page: Open) -> None:
    attempt = an_attempt(backend)
    write(attempt, 0, 3)
    page = open_page(Page.RUN, id=attempt.run.id)
    write(attempt, 3, 5)
    shown = page.run().code[0].value.splitlines()
    assert [line.split("line ")[1] for line in shown] == [f"{n} of it" for n in range(5)]


def test_a_long_log_shows_its_end_and_finds_its_beginning(
    backend: Backend, open_page: Open
) -> None:
    attempt = an_attempt(backend)
    write(attempt, 0, KEPT + 300)
    page = open_page(Page.RUN, id=attempt.run.id)
    assert f"line {KEPT + 299} of it" in page.code[0].value
    assert "line 0 of it" not in page.code[0].value
    assert "the download has them all" in text_of(page)
    next(f for f in page.text_input if f.placeholder == "Search").set_value("LINE 0 OF").run()
    assert page.code[0].value.endswith("line 0 of it")


def test_every_rank_has_its_own_output(backend: Backend, open_page: Open) -> None:
    attempt = an_attempt(backend)
    attempt.logs([(rank, 0.0, f"of {rank}") for rank in (None, 0, 1, 0)])
    page = open_page(Page.RUN, id=attempt.run.id, output="Rank 0")
    assert [line.split("  ")[1:] for line in page.code[0].value.splitlines()] == [
        ["rank0", "of 0"]
    ] * 2
    button(page, "Show stacks").click().run()
    assert backend.runs.get(attempt.run.id).stacks_asked == 1
    attempt.finish(RunState.SUCCEEDED, RunSummary())
    assert "Show stacks" not in [each.label for each in page.run().button]


def test_what_a_model_prints_is_text_and_nothing_else(backend: Backend, open_page: Open) -> None:
    attempt = an_attempt(backend)
    attempt.logs([(0, time.time(), "<b>bold</b> **stars** $x$ :red[no]")])
    page = open_page(Page.RUN, id=attempt.run.id)
    assert "<b>bold</b> **stars** $x$ :red[no]" in page.code[0].value


def test_names_are_text_and_nothing_else(backend: Backend, open_page: Open) -> None:
    definition = backend.definitions.add_zoo("mlp")
    run = backend.runs.submit(ProfileSpec(definition.id), "[click](http://x) :red[no]")
    page = open_page(Page.RUN, id=run.id)
    assert page.title[0].value.startswith("\\[click\\]\\(http\\://x\\) \\:red\\[no\\]")
