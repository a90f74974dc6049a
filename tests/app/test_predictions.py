"""What a run is compared with, stored or simulated again, and the plans that are computed once."""

from dataclasses import replace

import pytest

from app.queries import planner
from app.queries.segments import bars_of_run, predicted_bars, prediction_of
from backend.bootstrap import Backend
from backend.cluster.presets import local
from backend.errors import InvalidInput
from backend.planning.plan import PlanDoesNotFit
from backend.prediction.answer import Answer, ranked
from backend.prediction.question import Question
from backend.runs.request.spec import TrainSpec
from tests.app import seed


def test_the_stored_prediction_is_used_where_there_is_one(
    backend: Backend, seeded: seed.Seeded
) -> None:
    run = backend.runs.get(seeded.succeeded)
    measured = bars_of_run(run, "measured", 3, closed=True)
    stored = backend.runs.spans.timeline(run.id, "predicted", 3)
    assert measured is not None
    assert stored is not None
    found = predicted_bars(run, 3, measured)
    assert found is not None
    assert found.end.tolist() == [span.end for span in stored.spans]


def test_before_that_the_plan_is_simulated_for_as_many_microbatches(
    backend: Backend, seeded: seed.Seeded
) -> None:
    run = backend.runs.get(seeded.running)
    measured = bars_of_run(run, "measured", 0, closed=False)
    assert measured is not None
    assert bars_of_run(run, "predicted", 0, closed=False) is None
    found = predicted_bars(run, 0, measured)
    assert found is not None
    for column in ("rank", "index", "kind", "stage", "microbatch", "version", "peer"):
        assert getattr(found, column).tolist() == getattr(measured, column).tolist()


def test_a_long_segment_is_not_simulated_while_the_page_waits(
    backend: Backend, seeded: seed.Seeded, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = backend.runs.get(seeded.running)
    measured = bars_of_run(run, "measured", 0, closed=False)
    assert measured is not None
    monkeypatch.setattr("app.queries.segments.MOST_SIMULATED", len(measured) - 1)
    assert predicted_bars(run, 0, measured) is None


def test_a_run_without_a_stored_plan_has_no_prediction(
    backend: Backend, seeded: seed.Seeded
) -> None:
    run = backend.runs.get(seeded.running)
    assert isinstance(run.spec, TrainSpec)
    alone = replace(run, spec=replace(run.spec, plan_id=None))
    measured = bars_of_run(run, "measured", 0, closed=False)
    assert measured is not None
    assert prediction_of(alone) is None
    assert predicted_bars(alone, 0, measured) is None
    assert prediction_of(backend.runs.get(seeded.profiled)) is None
    assert prediction_of(run) == backend.plans.get(seeded.plan).prediction


def test_equal_questions_are_computed_once() -> None:
    profile = seed.a_profile()
    first = planner.asked(Question(profile, local(2), "straight"))
    again = planner.asked(Question(seed.a_profile(), local(2), "straight"))
    other = planner.asked(Question(profile, local(3), "straight"))
    assert again is first
    assert other is not first


def answers(question: Question) -> list[Answer]:
    found = planner.asked(question)
    assert found.wait(240)
    return ranked(found.items)


def test_faults_are_said_again_to_whoever_asks_again() -> None:
    profile = seed.a_profile()
    tiny = replace(local(2), device=replace(local(2).device, memory=1000.0))
    for _ in range(2):
        with pytest.raises(PlanDoesNotFit):
            answers(Question(profile, tiny, schedule="pipedream"))
    question = Question(profile, local(2), "straight", "gpipe", 8)
    plan = answers(question)[0].prediction.plan
    for _ in range(2):
        with pytest.raises(InvalidInput):
            planner.segment_timeline(question, plan, 3)
