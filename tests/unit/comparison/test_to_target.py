"""Time to a target from runs that were made up: known counts, known order."""

from dataclasses import replace

import pytest

from backend.cluster.cluster import Cluster, Level
from backend.comparison.aims import Aim
from backend.comparison.to_target import (
    Target,
    asked_for,
    learnt,
    target_of,
    time_to_target,
)
from backend.errors import InvalidInput
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.answer import rank
from backend.prediction.question import Question
from backend.prediction.same_updates import updates_of
from backend.runs.events import ACCURACY, HELD_OUT_LOSS
from backend.runs.history.records import MetricPoint
from backend.runs.request.spec import DataSpec, TrainSpec
from backend.runs.states import RunState
from tests.app.seed import a_profile
from tests.unit.comparison.test_comparison_of_runs import run

PROFILE = a_profile()
TARGET = Target(ACCURACY, 0.9)
STRAIGHT = Partition((Stage(0, 6, (0,)), Stage(6, 16, (1,))))
QUESTION = Question(PROFILE, Cluster((Level(2, 1e10),)), planner="")


def a_plan(schedule: str, batch: int = 1) -> Plan:
    return Plan("straight", STRAIGHT, schedule, PROFILE.microbatch, batch)


def a_run(number: int, plan: Plan, at: int | None, *, ended: bool = True, **spec: object):
    """A run with evaluations at 10, 20, ... 100 minibatches, at the target from `at` on."""
    asked = TrainSpec(1, plan, **{"data": DataSpec(samples=64), **spec})
    state = RunState.SUCCEEDED if ended else RunState.RUNNING
    found = replace(run(asked, number), state=state)
    steps = range(10, 101, 10)
    values = [0.95 if at is not None and step >= at else 0.5 for step in steps]
    points = [MetricPoint(s - 1, 0, v, float(s)) for s, v in zip(steps, values, strict=True)]
    return found, points


def test_the_median_of_the_runs_that_came_to_it() -> None:
    plan = a_plan("pipedream")
    found = learnt([a_run(n, plan, at) for n, at in ((5, 20), (4, 90), (3, 40), (2, None))], TARGET)
    (known,) = found.values()
    assert (known.updates, known.least, known.most) == (40, 20, 90)
    assert known.runs == (5, 4, 3)
    assert known.missed == 1


def test_rules_are_told_apart_and_flushing_ones_are_one() -> None:
    runs = [
        a_run(4, a_plan("pipedream"), 50),
        a_run(3, a_plan("1f1b-flush", 4), 20),
        a_run(2, a_plan("gpipe", 4), 40),
        a_run(1, a_plan("gpipe", 8), 10),
    ]
    found = learnt(runs, TARGET)
    assert found[updates_of(a_plan("gpipe", 4))].updates == 30
    assert found[updates_of(a_plan("zb-h1", 8))].updates == 10
    assert found[updates_of(a_plan("pipedream"))].updates == 50
    assert updates_of(a_plan("2bw", 4)) not in found


def test_other_data_emulated_runs_and_those_that_still_work_say_nothing() -> None:
    plan = a_plan("pipedream")
    runs = [
        a_run(5, plan, None, ended=False),
        a_run(4, plan, 50),
        a_run(3, plan, 10, data=DataSpec(samples=128)),
        a_run(2, plan, 10, emulate=1.0),
    ]
    (known,) = learnt(runs, TARGET).values()
    assert (known.runs, known.missed) == ((4,), 0)
    assert learnt([runs[3]], TARGET) == learnt([runs[0]], TARGET) == learnt([], TARGET) == {}


def test_a_loss_is_met_from_above() -> None:
    one, points = a_run(1, a_plan("pipedream"), None)
    falling = [replace(point, value=1 - point.step / 100) for point in points]
    (known,) = learnt([(one, falling)], Target(HELD_OUT_LOSS, 0.5)).values()
    assert known.updates == 60  # 1 - 59 / 100


def test_answers_are_ranked_by_seconds_to_the_target_and_unknown_ones_come_last() -> None:
    slow, fast = a_plan("1f1b-flush", 4), a_plan("pipedream")
    question = replace(QUESTION, planner="straight")
    answers = [rank(replace(question, schedule=plan.schedule))[0] for plan in (fast, slow)]
    learns_late = learnt([a_run(2, fast, 100), a_run(1, slow, 10)], TARGET)
    assert Aim(TARGET, learns_late).ranked(answers)[0].prediction.plan.schedule == "1f1b-flush"
    known = time_to_target(answers[1].prediction, learns_late)
    assert known is not None
    assert known.seconds == 10 * answers[1].prediction.seconds_per_minibatch
    only_one = learnt([a_run(2, slow, 100)], TARGET)
    assert Aim(TARGET, only_one).ranked(answers)[0].prediction.plan.schedule == "1f1b-flush"
    assert time_to_target(answers[0].prediction, only_one) is None
    assert Aim(TARGET).ranked(answers)[0] == max(
        answers, key=lambda a: a.prediction.samples_per_second
    )


def test_best_is_asked_under_every_rule_that_runs_know() -> None:
    histories = learnt([a_run(2, a_plan("gpipe", 8), 10), a_run(1, a_plan("2bw", 4), 20)], TARGET)
    asked = asked_for(replace(QUESTION, planner="best"), histories)
    assert [(q.planner, q.schedule, q.batch) for q in asked] == [
        ("best", "", 4),
        ("best", "1f1b-flush", 8),
        ("best", "2bw", 4),
    ]
    assert asked_for(replace(QUESTION, planner="straight"), histories)[1:] == ()
    assert asked_for(replace(QUESTION, planner="best", schedule="2bw"), histories)[1:] == ()


def test_without_a_run_the_ranking_is_that_of_rank() -> None:
    question = replace(QUESTION, planner="best")
    found, plain = Aim().rank(question), rank(question)
    assert [each.prediction for each in found] == [each.prediction for each in plain]


def test_targets_are_checked() -> None:
    assert target_of(None, None) is None
    assert target_of(0.9, None) == TARGET
    assert target_of(None, 0.3) == Target(HELD_OUT_LOSS, 0.3)
    for accuracy, loss in ((0.9, 0.3), (1.5, None), (0.0, None), (None, float("nan"))):
        with pytest.raises(InvalidInput):
            target_of(accuracy, loss)
