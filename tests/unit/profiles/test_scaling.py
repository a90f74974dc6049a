"""One rule says which costs of a layer change with what."""

from dataclasses import asdict, fields, replace

from backend.prediction.parallel_pipelines import with_gain
from backend.profiles.layer import Layer
from backend.profiles.local_head_cost import LocalHeadCost
from backend.profiles.profile import ModelGraph, Profile
from backend.profiles.roofline import Peak
from backend.profiles.transfer import carried
from backend.profiles.what_if import at_microbatch

COMPUTE = {"forward", "backward", "backward_input", "backward_weight"}
WEIGHTS = {"update", "adding", "out_of_place_update"}
SAMPLES = {"output_bytes", "saved_bytes", "deferred_bytes", "flops"}
FIXED = {"name", "kind", "parameter_bytes", "buffer_bytes", "frozen_bytes", "spread", "work_bytes"}
HEADS = {"local_heads"}
"""Those have numbers of their own."""
HEAD = LocalHeadCost(**{f.name: 8 for f in fields(LocalHeadCost)} | {"name": "h"})
NAMED = {"name": "l", "kind": "Linear", "local_heads": (HEAD,)}
LAYER = Layer(**{f.name: 8 for f in fields(Layer)} | NAMED)
PROFILE = Profile("p", ModelGraph((LAYER,), ()), 8)


def factors(layer: Layer) -> dict[str, float]:
    """By how much each number of the layer has changed."""
    return {name: value / 8 for name, value in asdict(layer).items() if name not in NAMED}


def factors_of_head(layer: Layer) -> dict[str, float]:
    """The same of its head."""
    [head] = layer.local_heads
    return {name: value / 8 for name, value in asdict(head).items() if name != "name"}


def expected(compute=1.0, weights=1.0, samples=1.0) -> dict[str, float]:
    return (
        dict.fromkeys(COMPUTE, compute)
        | dict.fromkeys(WEIGHTS, weights)
        | dict.fromkeys(SAMPLES, samples)
        | dict.fromkeys(FIXED - {"name", "kind"}, 1.0)
    )


def test_every_field_of_a_layer_is_scaled_with_one_thing_or_stays():
    assert {f.name for f in fields(Layer)} == COMPUTE | WEIGHTS | SAMPLES | FIXED | HEADS
    assert factors(LAYER.scaled(2, 4, 8)) == expected(2, 4, 8)
    fixed = {"parameter_bytes": 1.0, "work_bytes": 1.0}
    head = {"seconds": 2.0, "flops": 8.0} | dict.fromkeys(WEIGHTS, 4.0) | fixed
    assert factors_of_head(LAYER.scaled(2, 4, 8)) == head
    assert LAYER.scaled() == LAYER


def test_of_what_is_at_work_the_gradients_of_weights_stay():
    layer = Layer("l", "Linear", 1.0, 1.0, 1, parameter_bytes=100, work_bytes=130)
    assert layer.scaled(samples=2).work_bytes == 100 + 2 * 30
    assert replace(layer, work_bytes=70).scaled(samples=2).work_bytes == 70


def test_what_was_not_measured_stays_so():
    unknown = Layer("l", "Linear", 1.0, 1.0, 1, 1)
    assert unknown.scaled(2, 2, 2).saved_bytes is None
    assert unknown.scaled(2, 2, 2).flops is None
    assert unknown.scaled(2, 2, 2).deferred_bytes is None
    assert unknown.scaled(2, 2, 2).work_bytes is None


def test_a_microbatch_of_half_the_size_halves_compute_and_what_it_makes():
    assert factors(at_microbatch(PROFILE, 4).layers[0]) == expected(compute=0.5, samples=0.5)


def test_parallel_pipelines_that_gain_are_quicker_in_everything():
    assert factors(with_gain(PROFILE, 2.0).layers[0]) == expected(0.5, 0.5)


def test_another_device_computes_and_updates_by_its_own_peaks():
    here, there = Peak("here", 1.0, 1000.0), Peak("there", 4.0, 2000.0)
    assert factors(carried(PROFILE, here, there).layers[0]) == expected(0.25, 0.5)
