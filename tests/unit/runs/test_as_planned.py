"""A training keeps the state that its plan counted."""

from dataclasses import replace

import pytest

from backend.cluster.cluster import Cluster, Device, Level
from backend.codec import from_plain, to_plain
from backend.planning.optimizers import AVERAGED, OPTIMIZERS
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.prediction import Prediction
from backend.prediction.question import Question
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from backend.profiles.state_precision import STATE_PRECISIONS, StatePrecision
from backend.runs.request.as_planned import as_planned
from backend.runs.request.combinations import check_combinations
from backend.runs.request.spec import TrainSpec

LAYERS = tuple(Layer(f"l{n}", "Linear", 1e-3, 2e-3, 10**4, 10**6) for n in range(4))
PROFILE = Profile("chain", ModelGraph.chain(LAYERS), 8)
CLUSTER = Cluster((Level(2, 1e9),), Device("cpu", 1e9))
PLAN = Plan("even", Partition((Stage(0, 2, (0,)), Stage(2, 4, (1,)))), "1f1b-flush", 8, 4)


def predicted(optimizer: str, precision: StatePrecision) -> Prediction:
    question = Question(PROFILE, CLUSTER, optimizer=optimizer)
    return question.under(state_precision=precision).predict(PLAN)


@pytest.mark.parametrize("precision", STATE_PRECISIONS)
@pytest.mark.parametrize("averaged", ["", AVERAGED])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_training_takes_the_memory_that_was_predicted(
    name: str, averaged: str, precision: StatePrecision
) -> None:
    made = predicted(name + averaged, precision)
    spec = as_planned(TrainSpec(1, PLAN), made)
    check_combinations(spec)
    assert (spec.optimizer.name, spec.optimizer.ema > 0) == (name, bool(averaged))
    assert predicted(spec.optimizer.planned, spec.state_precision) == made


def test_a_plan_that_was_kept_before_tells_no_optimizer() -> None:
    stored = to_plain(Prediction, predicted("adamw", "bfloat16"))
    del stored["optimizer"], stored["state_precision"]
    made: Prediction = from_plain(Prediction, stored)
    spec = TrainSpec(1, PLAN, precision="float16")
    assert as_planned(spec, made) == spec


def test_what_else_is_asked_for_stays() -> None:
    spec = TrainSpec(1, PLAN, epochs=3, seed=7)
    found = as_planned(spec, predicted("lion", "float32-state16"))
    assert replace(found, optimizer=spec.optimizer, state_precision="float32") == spec
