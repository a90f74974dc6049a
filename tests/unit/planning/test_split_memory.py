"""What replicas hold of layers that they split by channels: by hand, and against their devices."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.cluster.cluster import Cluster, Device, Level
from backend.planning.channels.held import as_held
from backend.planning.channels.layer_split import LayerSplit
from backend.planning.channels.types import LayerType
from backend.planning.memory import memory_parts, replica_parts
from backend.planning.plan import Partition, Plan, PlanDoesNotFit, Stage
from backend.prediction.channel_splits import split_reason
from backend.prediction.predict import predict
from backend.prediction.question import Question
from backend.prediction.reasons import reasons
from backend.prediction.shapes import steady_shape
from backend.prediction.sizes import PlanSizes
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

INPUTS, OUTPUTS = LayerType.INPUTS, LayerType.OUTPUTS
LAYERS = (
    Layer("act", "ReLU", 1.0, 2.0, 40, 0, saved_bytes=40),
    Layer("fc", "Linear", 1.0, 2.0, 80, 1000, saved_bytes=0, work_bytes=1120),
    Layer("end", "LSTM", 1.0, 2.0, 8, 500, saved_bytes=80),
)
PROFILE = Profile("wide", ModelGraph.chain(LAYERS), 1)
ALONE = Partition((Stage(0, 3, (0, 1)),))


def plan(kind: LayerType, *parts: int, cut: Partition = ALONE, schedule: str = "gpipe") -> Plan:
    return Plan("t", cut, schedule, 1, 4, splits=(LayerSplit("fc", kind, parts),))


def held(layer: Layer) -> tuple[int, int | None, int | None]:
    return layer.parameter_bytes, layer.saved_bytes, layer.work_bytes


@pytest.mark.parametrize(
    ("kind", "replica", "expected"),
    [
        (INPUTS, 0, (250, 20, 250 + 80 + 4 * 80)),
        (INPUTS, 1, (750, 60, 750 + 80 + 4 * 80)),
        (INPUTS, None, (750, 60, 750 + 80 + 4 * 80)),
        (OUTPUTS, 0, (250, 80, 250 + 80 + 2 * 80)),
    ],
)
def test_a_slice_by_hand(kind: LayerType, replica: int | None, expected: tuple[int, ...]) -> None:
    """Its part of the weights; of 40 bytes of each of two microbatches its columns, or all."""
    found = as_held(PROFILE, plan(kind, 1, 3), replica)
    assert held(found.layers[1]) == expected
    assert (found.layers[0], found.layers[2]) == (LAYERS[0], LAYERS[2])


@pytest.mark.parametrize(
    ("change", "kept", "work"),
    [
        ({"saved_bytes": 40}, 40, 900),  # it kept what it reads, and keeps columns instead
        ({"saved_bytes": None}, 80 + 40, 900),
        ({"work_bytes": None}, 40, None),
        ({"kind": "Embedding", "saved_bytes": 16}, 2 * 16, 900),
    ],
)
def test_what_was_measured_of_the_whole_layer_counts(change: dict, kept: int, work: int) -> None:
    profile = PROFILE.with_layers((LAYERS[0], replace(LAYERS[1], **change), LAYERS[2]))
    assert held(as_held(profile, plan(INPUTS)).layers[1]) == (500, kept, work)


def test_layers_in_another_order_and_of_one_replica() -> None:
    turned = Partition((Stage(0, 2, (0, 1)), Stage(2, 3, (2,))), order=(1, 0, 2))
    loose = replace(PROFILE, graph=ModelGraph(LAYERS, ((0, 2), (1, 2))))
    assert as_held(loose, plan(OUTPUTS, cut=turned)).layers[1].parameter_bytes == 500
    alone = Partition((Stage(0, 1, (0, 1)), Stage(1, 3, (2,))))
    assert as_held(PROFILE, plan(INPUTS, 1, 3, cut=alone)) == PROFILE
    assert as_held(PROFILE, replace(plan(INPUTS), splits=())) is PROFILE


@given(st.lists(st.integers(1, 9), min_size=2, max_size=5), st.sampled_from([INPUTS, OUTPUTS]))
def test_slices_are_the_whole_layer(parts: list[int], kind: LayerType) -> None:
    wide = replace(LAYERS[1], parameter_bytes=10**6)
    profile = PROFILE.with_layers((LAYERS[0], wide, LAYERS[2]))
    cut = Partition((Stage(0, 3, tuple(range(len(parts)))),))
    asked = replace(plan(kind, *parts, cut=cut), batch=len(parts))
    shape = steady_shape(asked)
    (each,) = replica_parts(profile, asked, shape, "adam")
    (copied,) = memory_parts(profile, replace(asked, splits=()), shape, "adam")
    assert sum(one.weights - 500 for one in each) == pytest.approx(10**6, abs=len(parts))
    for one in each:
        assert one.gradients == one.weights
        assert one.optimizer == 2 * one.weights
        assert one.weights <= copied.weights


def test_a_training_begins_with_whole_layers() -> None:
    """Slices of a quarter under SGD hold less than the layer that they are taken from."""
    wide = replace(LAYERS[1], parameter_bytes=10**6)
    profile = replace(PROFILE, process_bytes=7).with_layers((LAYERS[0], wide, LAYERS[2]))
    cut = Partition((Stage(0, 3, (0, 1, 2, 3)),))
    asked = plan(INPUTS, cut=cut)
    (found,) = memory_parts(profile, asked, steady_shape(asked), "sgd")
    assert found.total == 10**6 + 500 + 7
    assert found.weights == 250_000 + 500


def test_split_layers_have_room_where_copied_ones_have_not() -> None:
    asked = plan(INPUTS)
    (copied,), (sliced,) = (
        memory_parts(PROFILE, each, steady_shape(each), "adam")
        for each in (replace(asked, splits=()), asked)
    )
    assert sliced.total < copied.total
    between = Device(memory=int(sliced.total))
    cluster = Cluster((Level(2, 1e9),), between)
    assert predict(PROFILE, cluster, asked, "adam").memory_bytes == (sliced.total,)
    with pytest.raises(PlanDoesNotFit):
        predict(PROFILE, cluster, replace(asked, splits=()), "adam")


def test_the_memory_over_time_is_that_of_the_largest_slice() -> None:
    asked = plan(INPUTS, 1, 3)
    sizes = PlanSizes(as_held(PROFILE, asked), ALONE, "adam")
    (most,) = memory_parts(PROFILE, asked, steady_shape(asked), "adam")
    assert (sizes.weights(0), sizes.optimizer(0)) == (most.weights, most.optimizer)


def test_reasons_tell_the_bytes_of_slices() -> None:
    """Also where moving a layer would leave it to a stage with another number of replicas."""
    cut = Partition((Stage(0, 2, (0, 1)), Stage(2, 3, (2,))))
    cluster = Cluster((Level(3, 1e9),))
    question = Question(PROFILE, cluster, batch=4, optimizer="adam")
    asked = plan(INPUTS, 1, 3, cut=cut)
    told = "the largest replicas hold 750 bytes of these weights instead of 1,000 bytes."
    assert told in split_reason(question, asked)
    assert any(told in reason for reason in reasons(question, question.predict(asked)))
