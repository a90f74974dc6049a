"""Going on from a checkpoint, and what came of the attempts, on the run's page."""

from hashlib import sha256

import pytest

from app.session.state import Page
from backend.bootstrap import Backend
from backend.errors import InvalidInput
from backend.runs.attempts.checkpoints import CheckpointFile, Mark
from backend.runs.request.spec import StopSpec, TrainSpec
from backend.runs.run import RunError, RunSummary
from backend.runs.states import RunState
from backend.services.runs.attempt import Attempt
from tests.app import seed
from tests.app.conftest import Open
from tests.app.pages import button, param, text_of

STEP, PART = 30, "stage-0.safetensors"
MARK = Mark(1, 96, STEP)
KILLED = RunError("RankKilled", "rank 0 was killed by signal 9")


def stopped(backend: Backend, found: seed.Seeded) -> int:
    """A training that restarted once from a checkpoint and was cancelled then."""
    plan = backend.plans.get(found.plan)
    run = seed.submit(backend, found.definition, plan, "stopped")
    first = seed.claim(backend, run)
    seed.train_epoch(backend, first, plan, 0)
    keep(first)
    first.finish(RunState.FAILED, RunSummary(), KILLED)
    second = seed.claim(backend, run)
    second.resumed(second.beginnings()[0])
    second.finish(RunState.CANCELLED, RunSummary())
    return run.id


def keep(attempt: Attempt, mark: Mark = MARK) -> None:
    folder = attempt.checkpoint_folder(STEP)
    folder.mkdir(parents=True)
    (folder / PART).write_bytes(b"12345")
    part = CheckpointFile(PART, 5, sha256(b"12345").hexdigest())
    attempt.checkpoint(mark, [part], 3)


def test_a_run_goes_on_as_a_new_one(backend: Backend, seeded: seed.Seeded, open_page: Open) -> None:
    run_id = stopped(backend, seeded)
    page = open_page(Page.RUN, id=run_id)
    assert "checkpoint after update 30 (in epoch 2)" in text_of(page)
    page.number_input(key="resume-epochs").set_value(9)
    page.number_input(key="resume-rate").set_value(0.25)
    button(page, "Resume the run").click().run()
    resumed = backend.runs.list(limit=1).runs[0]
    assert param(page, "id") == str(resumed.id)
    assert resumed.origin_id == run_id
    assert isinstance(resumed.spec, TrainSpec)
    assert (resumed.spec.epochs, resumed.spec.optimizer.learning_rate) == (9, 0.25)
    assert resumed.spec.checkpoint_id == backend.runs.checkpoints.list(run_id)[0].id


def test_what_has_come_to_its_end_is_trained_on(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    run = seed.submit(backend, seeded.definition, backend.plans.get(seeded.plan), "whole")
    attempt = seed.claim(backend, run)
    keep(attempt, Mark(run.spec.epochs, 0, STEP))
    attempt.finish(RunState.SUCCEEDED, RunSummary())
    page = open_page(Page.RUN, id=run.id)
    assert f"(end of epoch {run.spec.epochs})" in text_of(page)
    page.number_input(key="resume-epochs").set_value(4)
    button(page, "Train on").click().run()
    longer = backend.runs.list(limit=1).runs[0]
    assert longer.origin_id == run.id
    assert longer.spec.epochs == run.spec.epochs + 4
    with pytest.raises(InvalidInput, match="has trained"):
        backend.runs.resume(run.id)


def test_epochs_take_the_place_of_a_limit_of_updates_that_is_used_up(
    backend: Backend, seeded: seed.Seeded
) -> None:
    """Else the rate of the run that goes on would stand at 0, and it would end at once."""
    plan = backend.plans.get(seeded.plan)
    spec = TrainSpec(seeded.definition, plan.plan, plan.id, stop=StopSpec(3, updates=STEP))
    run = backend.runs.submit(spec, "short")
    attempt = seed.claim(backend, run)
    keep(attempt)
    attempt.finish(RunState.SUCCEEDED, RunSummary())
    with pytest.raises(InvalidInput, match=f"made the {STEP} updates"):
        backend.runs.resume(run.id)
    resumed = backend.runs.resume(run.id, epochs=5)
    assert isinstance(resumed.spec, TrainSpec)
    assert resumed.spec.stop == StopSpec(3)


def test_attempts_say_where_they_began_and_why_they_ended(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    page = open_page(Page.RUN, id=stopped(backend, seeded))
    (table,) = [frame.value for frame in page.dataframe if "outcome" in frame.value.columns]
    assert list(table["outcome"]) == ["restarted", "cancelled"]
    assert list(table["from update"]) == ["—", "30"]
    assert "killed by signal 9" in table["reason"][0]
    assert "attempt 1, 5\u00a0B" in text_of(page)


def test_another_plan_of_the_profile_can_be_gone_on_with(
    backend: Backend, seeded: seed.Seeded, open_page: Open
) -> None:
    run_id = stopped(backend, seeded)
    other = seed.another_plan(backend, backend.profiles.get(seeded.profile))
    page = open_page(Page.RUN, id=run_id)
    page.selectbox(key="resume-plan").set_value(other.id)
    button(page, "Resume the run").click().run()
    assert backend.runs.list(limit=1).runs[0].spec.plan == other.plan


def test_without_a_checkpoint_there_is_nothing_to_resume(
    seeded: seed.Seeded, open_page: Open
) -> None:
    for run_id in (seeded.failed, seeded.running, seeded.profiled):
        page = open_page(Page.RUN, id=run_id)
        assert "Resume the run" not in [found.label for found in page.button]
        assert not page.exception
