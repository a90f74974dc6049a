"""Bytes of a stage, counted by hand."""

from dataclasses import replace

import pytest

from backend.cluster.cluster import Cluster, Level
from backend.errors import InvalidInput
from backend.pipeline.memory import memory, peak
from backend.pipeline.schedules.catalog import schedule, training_schedules
from backend.planning.memory import held_in_flight, held_once, memory_bytes
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.predict import predicted_program
from backend.prediction.shapes import steady_shape
from backend.prediction.sizes import PlanSizes
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from backend.profiles.what_if import kept_in

LAYERS = (
    Layer("a", "Linear", 1, 1, output_bytes=100, parameter_bytes=1000),
    Layer("b", "Linear", 1, 1, output_bytes=20, parameter_bytes=3000),
    Layer("c", "add", 1, 1, output_bytes=3, parameter_bytes=0),
)
PROFILE = Profile("p", ModelGraph(LAYERS, ((0, 1), (1, 2), (0, 2))), 1)


def stage_bytes_of(profile, stage, versions, in_flight, optimizer, recompute=False):
    once = held_once(profile, stage, versions, optimizer)
    return (once + held_in_flight(profile, stage, in_flight, recompute)).total


def test_the_layer_that_needs_most_is_at_work_where_there_is_work():
    layers = tuple(
        replace(x, work_bytes=w) for x, w in zip(PROFILE.layers, (5, 9, None), strict=True)
    )
    worked = replace(PROFILE, graph=replace(PROFILE.graph, layers=layers))
    for stage, more in ((Stage(0, 1, (0,)), 5), (Stage(0, 2, (0,)), 9), (Stage(2, 3, (0,)), 0)):
        before = stage_bytes_of(PROFILE, stage, 1, 2, "sgd")
        assert stage_bytes_of(worked, stage, 1, 2, "sgd") == before + more
        assert stage_bytes_of(worked, stage, 1, 0, "sgd") == stage_bytes_of(
            PROFILE, stage, 1, 0, "sgd"
        )


@pytest.mark.parametrize(("optimizer", "copies"), [("sgd", 0), ("momentum", 1), ("adam", 2)])
def test_weights_versions_gradients_and_state_are_counted(optimizer, copies):
    bytes_needed = stage_bytes_of(PROFILE, Stage(0, 2, (0,)), 3, 0, optimizer)
    assert bytes_needed == 4000 * (3 + 1 + copies)


def test_frozen_weights_and_buffers_are_counted_once():
    frozen = replace(LAYERS[1], parameter_bytes=30, frozen_bytes=5000, buffer_bytes=7)
    lora = Profile("p", ModelGraph.chain((LAYERS[0], frozen)), 1)
    assert stage_bytes_of(lora, Stage(1, 2, (0,)), 3, 0, "adam") == 30 * (3 + 1 + 2) + 5007


@pytest.mark.parametrize(
    ("precision", "first", "more"),
    [
        ("float32", 4, 4 + 8),
        ("float32-state16", 4, 4 + 4),
        ("bfloat16-masters", 2, 2 + 4 + 8),
        ("bfloat16-masters-state16", 2, 2 + 4 + 4),
        ("bfloat16-state32", 2, 2 + 8),
        ("bfloat16", 2, 2 + 4),
    ],
)
def test_state_is_counted_in_its_precision(precision, first, more):
    """1,000 trained weights under Adam and 500 frozen ones: bytes of a version of a weight, and of
    all beside."""
    layer = replace(LAYERS[0], parameter_bytes=4000, frozen_bytes=2000, buffer_bytes=7)
    kept = kept_in(Profile("p", ModelGraph.chain((layer,)), 1), precision)
    for versions in (1, 3):
        expected = 1000 * (versions * first + more) + 500 * first + 7
        assert stage_bytes_of(kept, Stage(0, 1, (0,)), versions, 0, "adam") == expected
    sizes = PlanSizes(kept, Partition((Stage(0, 1, (0,)),)), "adam")
    assert sizes.weights(0) == 1000 * first
    assert sizes.optimizer(0) == 1000 * (more - first)
    assert sizes.reference(0) == 1000 * (4 if "masters" in precision else first)


@pytest.mark.parametrize(("precision", "reference"), [("bfloat16", 2), ("bfloat16-masters", 4)])
def test_the_reference_of_pipelines_is_as_exact_as_masters(precision, reference):
    profile = kept_in(Profile("p", ModelGraph.chain(LAYERS[:2]), 1), precision)
    plan = Plan("", Partition((Stage(0, 2, (0,)),)), "afp", 1, 1)
    both = replace(plan, num_pipelines=2)
    one, two = (memory_bytes(profile, each, steady_shape(each), "sgd")[0] for each in (plan, both))
    assert two == 2 * one + 1000 * reference


def test_activations_in_flight_include_the_bundle_that_comes_in():
    """Two bundles more are on their way at each end: 100 out of the first, 120 into the last."""
    assert stage_bytes_of(PROFILE, Stage(0, 1, (0,)), 0, 2, "sgd") == 1000 + 2 * 100 + 2 * 100
    assert stage_bytes_of(PROFILE, Stage(2, 3, (0,)), 0, 5, "sgd") == 5 * (100 + 20 + 3) + 2 * 120


def test_an_unknown_optimizer_names_the_known_ones():
    with pytest.raises(InvalidInput, match="shampoo") as refusal:
        stage_bytes_of(PROFILE, Stage(0, 1, (0,)), 1, 1, "shampoo")
    assert "adam" in refusal.value.advice


def test_recomputation_keeps_the_bundles_and_one_microbatch():
    assert stage_bytes_of(PROFILE, Stage(2, 3, (0,)), 0, 5, "sgd", recompute=True) == 7 * 120 + 3


@pytest.mark.parametrize("name", [s.name for s in training_schedules() if not s.chunked])
@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize(("batch", "precision"), [(4, "float32"), (8, "bfloat16-masters-state16")])
def test_a_simulated_program_holds_as_much(name, recompute, batch, precision):
    """On equal stages and fast links, at any time, but for messages that come early where forwards
    run ahead; with split backwards recomputed activations wait for their weights' half."""
    layer = Layer("l", "Linear", 1.0, 2.0, 100, 1000, saved_bytes=700, update=0.1)
    layers = (replace(layer, deferred_bytes=300, frozen_bytes=50),) * 4
    profile = kept_in(Profile("even", ModelGraph.chain(layers), 1), precision)
    partition = straight_cut(4)
    plan = Plan("", partition, name, 1, batch if schedule(name).batched else 1, recompute)
    profile = replace(profile, process_bytes=500)
    promised = memory_bytes(profile, plan, steady_shape(plan), "adam")
    cluster = Cluster((Level(4, 1e6),))
    program, timeline = predicted_program(
        profile, cluster, plan, steady_shape(plan).num_microbatches
    )
    held = memory(program, timeline, PlanSizes(profile, partition, "adam"))
    peaks = [peak(moments).holding.total for moments in held]
    assert all(mine <= 1.05 * most for mine, most in zip(peaks, promised, strict=True))
    assert max(peaks) >= 0.9 * max(promised)


@pytest.mark.parametrize("name", ["pipedream", "2bw", "1f1b-flush"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16-masters"])
def test_replicas_that_share_state_hold_as_much_as_is_promised(name, precision):
    """Two stages of three replicas and one: masters and two moments are in thirds on the first."""
    layers = (Layer("l", "Linear", 1.0, 2.0, 100, 6000, saved_bytes=700, update=0.1),) * 2
    profile = kept_in(Profile("even", ModelGraph.chain(layers), 1), precision)
    partition = Partition((Stage(0, 1, (0, 1, 2)), Stage(1, 2, (3,))))
    batch = 6 if schedule(name).batched else 1
    plan = Plan("", partition, name, 1, batch, shard_state=True)
    shape = steady_shape(plan)
    promised = memory_bytes(profile, plan, shape, "adam")
    whole = memory_bytes(profile, replace(plan, shard_state=False), shape, "adam")
    state = PlanSizes(profile, partition, "adam").optimizer(0)
    assert promised[0] == pytest.approx(whole[0] - state * 2 / 3)
    assert promised[1] == whole[1]
    cluster = Cluster((Level(4, 1e9),))
    program, timeline = predicted_program(profile, cluster, plan, shape.num_microbatches)
    shared, alone = (
        memory(program, timeline, PlanSizes(profile, partition, "adam", sharded))
        for sharded in (True, False)
    )
    saved = [
        peak(one).holding.total - peak(other).holding.total
        for one, other in zip(alone, shared, strict=True)
    ]
    assert saved == pytest.approx([state * 2 / 3] * 3 + [0.0])


def straight_cut(count: int) -> Partition:
    return Partition(tuple(Stage(n, n + 1, (n,)) for n in range(count)))
