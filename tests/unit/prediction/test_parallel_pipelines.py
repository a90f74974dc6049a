"""What two pipelines gain together, and what that does to AvgPipe's plans."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.cluster.presets import local
from backend.errors import InvalidInput
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.parallel_pipelines import gain_of_sharing
from backend.prediction.question import Question
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

LAYERS = tuple(Layer(f"l{n}", "Linear", 1.0, 2.0, 10, 10, 0.25) for n in range(2))
PROFILE = Profile("p", ModelGraph.chain(LAYERS), 4)
QUESTION = Question(PROFILE, local(2), batch=4)
PARTITION = Partition((Stage(0, 1, (0,)), Stage(1, 2, (1,))))


def plan(num_pipelines):
    return Plan("avgpipe", PARTITION, "afp", 4, 4, num_pipelines=num_pipelines)


def test_two_pipelines_that_take_turns_gain_nothing_and_never_lose():
    assert gain_of_sharing(1.0, 2.0) == 1.0
    assert gain_of_sharing(1.0, 2.5) == 1.0


@given(st.floats(1e-6, 1e3), st.floats(1, 2))
def test_the_gain_is_found_again(alone, gain):
    assert gain_of_sharing(alone, 2 * alone / gain) == pytest.approx(gain)


@pytest.mark.parametrize("times", [(0.0, 1.0), (1.0, -1.0), (1.0, float("inf"))])
def test_no_measurement_is_refused(times):
    with pytest.raises(InvalidInput, match="cannot be measured"):
        gain_of_sharing(*times)


def test_the_gain_counts_for_pipelines_alone():
    gaining = replace(QUESTION, gain=1.5)
    assert gaining.predict(plan(1)) == QUESTION.predict(plan(1))
    turns, together = QUESTION.predict(plan(2)), gaining.predict(plan(2))
    assert turns.samples_per_second < together.samples_per_second
    assert together.samples_per_second <= 1.5 * turns.samples_per_second * (1 + 1e-9)


def test_a_measured_size_is_taken_as_measured_and_others_in_proportion():
    layers = tuple(replace(layer, forward=0.9) for layer in LAYERS)
    half = replace(PROFILE, microbatch=2, graph=ModelGraph.chain(layers))
    question = replace(QUESTION, further=(half,))
    assert question.at(2) == half
    assert question.at(4) == PROFILE
    assert question.at(1).layers[0].forward == pytest.approx(0.25)
