"""A watched metric that evaluations do not tell is said by page, command and export."""

from dataclasses import replace

import pytest
from typer.testing import CliRunner

from app.cli import app
from app.exports.run_document import run_document
from app.formats import plain
from app.session.state import Page
from backend.bootstrap import Backend
from backend.runs.events import Metrics
from backend.runs.request.spec import CheckpointSpec, StopSpec
from backend.runs.run import RunSummary
from backend.runs.states import RunState
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import text_of


def a_run(
    backend: Backend, seeded: seed.Seeded, watched: str, epochs: int, emulate: float = 0.0
) -> int:
    """A training with patience; its loss logs "kl" after each update."""
    plan = backend.plans.get(seeded.plan)
    spec = seed.submit(backend, seeded.definition, plan).spec
    stop = StopSpec(0 if emulate else 3, watched, "larger")
    spec = replace(spec, stop=stop, checkpoints=CheckpointSpec(best=True))
    run = backend.runs.submit(replace(spec, target_accuracy=None, emulate=emulate))
    attempt = seed.claim(backend, run)
    for epoch in range(epochs):
        seed.train_epoch(backend, attempt, plan, epoch)
        steps = tuple(range(epoch * seed.PER_EPOCH, (epoch + 1) * seed.PER_EPOCH))
        attempt.metrics(Metrics("kl", steps, (0.1,) * len(steps), (1.0,) * len(steps), epoch))
    attempt.finish(RunState.SUCCEEDED, RunSummary())
    return run.id


@pytest.mark.parametrize("watched", ["fi", "kl"])
def test_a_metric_that_never_comes_is_told(
    backend: Backend, seeded: seed.Seeded, open_page: Open, watched: str
) -> None:
    run = a_run(backend, seeded, watched, 2)
    said = (
        f"Evaluations do not tell '{watched}': they tell accuracy, f1. So patience has no effect "
        "and no best checkpoint is kept. Launch it again with one of these as the metric."
    )
    assert backend.runs.watched_in_vain(backend.runs.get(run)) == said
    page = open_page(Page.RUN, id=run)
    assert [each for each in page.warning if plain(said) in each.value]
    shown = CliRunner().invoke(app, ["show", str(run)], env={"COLUMNS": "80"})
    assert said in " ".join(shown.output.split())
    assert run_document(backend, backend.runs.get(run))["watched_in_vain"] == said


@pytest.mark.parametrize(("watched", "emulate"), [("f1", 0.0), ("accuracy", 0.0), ("fi", 1.0)])
def test_nothing_is_said_of_one_that_comes_or_of_emulated_devices(
    backend: Backend, seeded: seed.Seeded, open_page: Open, watched: str, emulate: float
) -> None:
    run = a_run(backend, seeded, watched, 2, emulate)
    assert "do not tell" not in text_of(open_page(Page.RUN, id=run))


def test_a_run_without_an_evaluation_says_so_at_its_end(
    backend: Backend, seeded: seed.Seeded
) -> None:
    run = backend.runs.get(a_run(backend, seeded, "accuracy", 0))
    assert "the run has none" in (backend.runs.watched_in_vain(run) or "")
    going = replace(run, state=RunState.RUNNING)
    assert backend.runs.watched_in_vain(going) is None
