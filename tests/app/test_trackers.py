"""Experiment trackers on the pages: chosen at launch, followed, why not; runs that are imported."""

from pathlib import Path

import pytest

from app.session.state import Page
from backend.runs.history.followed import Following
from backend.runs.request.spec import TrainSpec
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import button, text_of
from tests.contract.test_imported_runs import THEIRS, brought


def test_a_run_is_followed_stopped_and_followed_again(
    home: Path, monkeypatch: pytest.MonkeyPatch, open_page: Open
) -> None:
    monkeypatch.setenv("STAGEFLOW_TRACKERS", "tensorboard mlflow+http://127.0.0.1:9")
    backend = seed.fresh()
    found = seed.everything(backend)
    backend.following.turn("tensorboard")
    backend.following.turn("mlflow")
    page = open_page(Page.RUN, id=found.succeeded)
    text = text_of(page).replace("\\", "")
    assert "Experiment trackers" in text
    assert "complete" in text
    assert str(home / "tensorboard" / f"run-{found.succeeded}") in text
    assert "MLflow does not answer" in text
    button(page, "Stop").click().run()
    (mlflow, _) = backend.trackers.list(found.succeeded)
    assert mlflow.state is Following.OFF
    page = open_page(Page.RUN, id=found.succeeded)
    button(page, "Follow again").click().run()
    assert backend.trackers.list(found.succeeded)[0].state is Following.ON
    backend.close()


def test_where_a_run_is_followed_is_chosen_at_launch(
    home: Path, monkeypatch: pytest.MonkeyPatch, open_page: Open
) -> None:
    monkeypatch.setenv("STAGEFLOW_TRACKERS", "tensorboard wandb+offline:///p")
    backend = seed.fresh()
    found = seed.everything(backend)
    page = open_page(Page.LAUNCH, plan=found.plan, trackers="wandb")
    button(page, "Start run").click().run()
    run = backend.runs.list(limit=1).runs[0]
    assert isinstance(run.spec, TrainSpec)
    assert run.spec.trackers == ("wandb",)
    assert [each.tracker for each in backend.trackers.list(run.id)] == ["wandb"]
    backend.close()


def test_an_imported_run_has_its_page_and_is_compared(home: Path, open_page: Open) -> None:
    backend = seed.fresh()
    found = seed.everything(backend)
    run = brought(backend, backend.definitions.get(found.definition), THEIRS)
    page = open_page(Page.RUN, id=run.id)
    assert not page.exception
    assert "Imported from MLflow" in text_of(page)
    assert button(page, "Clone").disabled
    page = open_page(Page.COMPARE, runs=f"{found.succeeded},{run.id}")
    assert "theirs" in page.multiselect[0].options
    assert "imported from MLflow" in text_of(page)
    assert "No training run" not in text_of(page)
    assert not page.exception
    page = open_page(Page.LAUNCH, run=run.id)
    assert "was imported" in text_of(page)
    backend.close()


def test_without_trackers_no_page_has_a_word_of_them(seeded: seed.Seeded, open_page: Open) -> None:
    assert "Experiment trackers" not in text_of(open_page(Page.RUN, id=seeded.succeeded))
