"""The range of a prediction: what it holds, and what makes it wider."""

from dataclasses import replace
from math import exp, log

import pytest

from backend.cluster.presets import local
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction import predict as predicting
from backend.prediction.likely import IN_TURNS, NINE_OF_TEN, OWN_CORES, likely_seconds
from backend.prediction.predict import predict
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

LAYERS = tuple(Layer(f"l{n}", "Linear", 1e-3, 2e-3, 8, 8) for n in range(4))
PROFILE = Profile("p", ModelGraph.chain(LAYERS), 1)
STRAIGHT = Partition(tuple(Stage(n, n + 1, (n,)) for n in range(4)))
PLAN = Plan("x", STRAIGHT, "pipedream", 1)


@pytest.mark.parametrize(("in_turns", "usual"), [(False, OWN_CORES), (True, IN_TURNS)])
def test_a_range_is_that_of_nine_of_ten_runs_as_they_were_measured(in_turns, usual):
    low, high = likely_seconds(2.0, PROFILE, in_turns)
    mean, deviation = usual
    assert log(low * high / 4) / 2 == pytest.approx(mean)
    assert log(high / low) == pytest.approx(2 * NINE_OF_TEN * deviation)


def test_layers_that_were_measured_for_others_make_it_wider():
    """By half their range, squared up with the rest; the other layers have none."""
    drawn = tuple(
        replace(each, spread=s) for each, s in zip(LAYERS, (0.4, None, 0.0, 0.4), strict=True)
    )
    low, high = likely_seconds(1.0, PROFILE.with_layers(drawn), False)
    half = ((NINE_OF_TEN * OWN_CORES[1]) ** 2 + 0.2**2) ** 0.5
    assert high / low == pytest.approx(exp(2 * half))


def test_every_prediction_has_its_range(monkeypatch):
    own = predict(PROFILE, local(4), PLAN)
    turns = predict(PROFILE, local(4, cores=2), PLAN)
    assert own.seconds_range == likely_seconds(own.seconds_per_minibatch, PROFILE, False)
    assert turns.seconds_range == likely_seconds(turns.seconds_per_minibatch, PROFILE, True)
    low, high = own.rate_range
    assert [low * own.seconds_range[1], high * own.seconds_range[0]] == pytest.approx([1, 1])
    assert low < own.samples_per_second < high
    assert replace(own, seconds_range=None).rate_range is None
    monkeypatch.setattr(predicting, "MOST_FORWARDS", 0)
    guess = predict(PROFILE, local(4), PLAN)
    factors = [each / guess.seconds_per_minibatch for each in guess.seconds_range]
    assert factors == pytest.approx([0.86, 2.75])
