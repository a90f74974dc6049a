"""Profiles that were computed and not measured."""

import pytest

from backend.errors import InvalidInput
from backend.profiles.crossing import Crossing, TiedWeight
from backend.profiles.devices import Peak
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from backend.profiles.roofline import Work, roofline
from backend.profiles.what_if import at_microbatch

PROFILE = Profile("p", ModelGraph.chain((Layer("l", "Linear", 1.0, 2.0, 100, 7, 0.5),)), 8)


def test_half_a_microbatch_takes_half_the_time_and_keeps_its_weights():
    found = at_microbatch(PROFILE, 4)
    [layer] = found.layers
    assert (layer.forward, layer.backward, layer.output_bytes) == (0.5, 1.0, 50)
    assert (layer.parameter_bytes, layer.update, found.microbatch) == (7, 0.5, 4)
    assert "proportion" in found.notes[-1]
    assert at_microbatch(PROFILE, 8) is PROFILE


def test_no_microbatch_is_refused():
    with pytest.raises(InvalidInput, match="0"):
        at_microbatch(PROFILE, 0)


def test_a_layer_takes_the_longer_of_operations_and_bytes():
    peak = Peak("device", flops=100.0, bandwidth=10.0)
    work = (Work("matmul", "Linear", 400.0, 10.0, 8, 4), Work("relu", "ReLU", 10.0, 20.0, 8, 0))
    profile = roofline("m", work, [(0, 1)], 2, peak)
    assert [(x.forward, x.backward) for x in profile.layers] == [(4.0, 8.0), (2.0, 4.0)]
    assert profile.device == "device"
    assert "0.8 to 2.6 times as long" in profile.notes[0]


def test_half_the_efficiency_takes_twice_as_long():
    work = (Work("matmul", "Linear", 400.0, 10.0, 8, 4),)
    profile = roofline("m", work, [], 2, Peak("device", 100.0, 10.0, efficiency=0.5))
    assert profile.layers[0].forward == 8.0


@pytest.mark.parametrize("peak", [Peak("x", 0, 1), Peak("x", 1, 1, 0.0), Peak("x", 1, 1, 1.5)])
def test_no_device_is_refused(peak):
    with pytest.raises(InvalidInput, match="x"):
        roofline("m", (), [], 1, peak)


def test_all_that_belongs_to_a_microbatch_is_in_proportion_and_weights_are_not():
    layer = Layer("l", "Linear", 2.0, 4.0, 10, 7, 0.5, 1.0, saved_bytes=30, flops=8.0)
    crossings = (Crossing(0, (1,), 10), Crossing(0, (2,), 7))
    graph = ModelGraph((layer,) * 3, ((0, 1), (1, 2)), crossings, (TiedWeight(0, (2,), "w", 7),))
    found = at_microbatch(Profile("p", graph, 2), 4)
    twice = Layer("l", "Linear", 4.0, 8.0, 20, 7, 0.5, 2.0, saved_bytes=60, flops=16.0)
    assert found.layers == (twice,) * 3
    assert found.graph.crossings == (Crossing(0, (1,), 20), Crossing(0, (2,), 7))
    assert found.graph.tied_weights == graph.tied_weights


@pytest.mark.parametrize(("rows", "then"), [(None, None), (2, 6), (10, 30), (3, 3), (0, 0)])
def test_rows_of_a_tensor_grow_where_they_are_samples(rows, then):
    layers = (Layer("l", "Linear", 1.0, 1.0, 120, 0),) * 2
    graph = ModelGraph(layers, ((0, 1),), (Crossing(0, (1,), 120, rows=rows),))
    found = at_microbatch(Profile("p", graph, 2), 6)
    assert found.graph.crossings == (Crossing(0, (1,), 360, rows=then),)
