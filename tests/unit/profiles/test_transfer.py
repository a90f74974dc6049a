"""A profile as another device would run it."""

from dataclasses import replace

import pytest

from backend.errors import InvalidInput
from backend.profiles.coding_speed import CodingSpeed
from backend.profiles.devices import peak
from backend.profiles.layer import Layer
from backend.profiles.message_overhead import MessageOverhead
from backend.profiles.profile import ModelGraph, Profile
from backend.profiles.transfer import on_device

V100, A100 = peak("v100"), peak("a100")
DENSE = Layer("dense", "Linear", 1.0, 2.0, 1000, 1000, 0.5, 0.75)
POINTWISE = Layer("relu", "ReLU", 1.5, 1.5, int(0.9e12), 0)
PROFILE = Profile("p", ModelGraph.chain((DENSE, POINTWISE)), 4, device="Tesla V100")


def test_each_layer_is_as_much_faster_as_what_binds_it():
    dense, pointwise = on_device(PROFILE, "a100").layers
    compute, memory = A100.flops / V100.flops, A100.bandwidth / V100.bandwidth
    assert dense.forward == pytest.approx(1.0 / compute)
    assert dense.backward == pytest.approx(2.0 / compute)
    assert dense.backward_input == pytest.approx(0.75 / compute)
    assert dense.update == pytest.approx(0.5 / memory)
    assert pointwise.forward == pytest.approx(1.5 / memory)


def test_counted_operations_decide_where_they_are_known():
    few = replace(DENSE, flops=1.0)
    profile = replace(PROFILE, graph=ModelGraph.chain((few, POINTWISE)))
    assert on_device(profile, "a100").layers[0].forward == pytest.approx(
        V100.bandwidth / A100.bandwidth
    )


def test_the_same_device_changes_nothing_and_the_note_says_the_error():
    same = on_device(PROFILE, "v100")
    assert same.layers == PROFILE.layers
    note = on_device(PROFILE, "a100").notes[-1]
    assert "1.24" in note
    assert "1.73" in note


@pytest.mark.parametrize(("target", "measured_on"), [("abacus", "v100"), ("a100", "abacus")])
def test_unknown_devices_are_refused(target, measured_on):
    with pytest.raises(InvalidInput, match="abacus"):
        on_device(PROFILE, target, measured_on)


def test_the_precision_is_asked_for_and_float32_without_that():
    half = on_device(PROFILE, "a100", precision="float16").layers[0]
    assert half.forward == pytest.approx(125 / 312)
    tf32 = on_device(PROFILE, "a100-tf32").layers[0]
    assert tf32.forward == pytest.approx(15.7 / 156)
    with pytest.raises(InvalidInput, match="V100 does not compute in bfloat16"):
        on_device(PROFILE, "a100", precision="bfloat16")


def test_a_profile_that_does_not_say_where_it_was_measured_is_asked_about():
    with pytest.raises(InvalidInput, match="unknown") as refusal:
        on_device(replace(PROFILE, device="unknown"), "a100")
    assert "measured on" in refusal.value.advice


def test_messages_cost_hosts_what_they_did_and_codecs_what_memory_makes_of_them():
    """A device must not come out ahead of a faster one that the profile is of: both count them."""
    overhead = MessageOverhead(1e-4, 1e-9, 2e-4, 2e-9)
    coding = CodingSpeed("int8", 1e-5, 4e-9, 2e-5, 8e-9)
    profile = replace(PROFILE, message_overhead=overhead, coding_speeds=(coding,))
    there = on_device(profile, "a100")
    share = V100.bandwidth / A100.bandwidth
    assert there.message_overhead == overhead
    [found] = there.coding_speeds
    assert found.encoding(1e9) == pytest.approx(1e-5 + 4 * share)
    assert found.decoding(1e9) == pytest.approx(2e-5 + 8 * share)
