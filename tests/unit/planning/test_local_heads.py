"""A profile with the heads of local losses: what they add, where, and what stages no longer do."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from backend.cluster.cluster import Cluster, Level
from backend.planning.local_heads import headed, heads_of
from backend.planning.memory import replica_parts
from backend.planning.plan import Partition, Plan, Stage
from backend.prediction.durations import PlanDurations
from backend.prediction.predict import predict, predicted_durations
from backend.prediction.question import Question
from backend.prediction.reasons import reasons
from backend.prediction.shapes import steady_shape
from backend.profiles.layer import Layer
from backend.profiles.local_head_cost import LocalHeadCost
from backend.profiles.profile import ModelGraph, Profile
from backend.profiles.what_if import at_microbatch, kept_in
from backend.runs.request.spec import TrainSpec
from backend.services.runs.predicted import profile_of

LINEAR = LocalHeadCost("linear", 5e-4, 4_000, 5_000, 1e3, 1e-5, 2e-5, 3e-5)
LARGE = LocalHeadCost("similarity", 9e-3, 9_000, 10**6, 1e4, 4e-5, 5e-5, 6e-5)
HALVES = {"backward_input": 1.2e-3, "backward_weight": 1e-3}


def layer(number: int, weights: int = 10**5, **more) -> Layer:
    heads = (LINEAR, LARGE)
    return Layer(f"l{number}", "Linear", 1e-3, 2e-3, 800, weights, 1e-4, local_heads=heads, **more)


PROFILE = Profile("chain", ModelGraph.chain(tuple(layer(n, **HALVES) for n in range(4))), 8)
CLUSTER = Cluster((Level(2, 1e9),))


def plan_of(*bounds: int, schedule: str = "local", order: tuple[int, ...] = ()) -> Plan:
    stages = tuple(Stage(a, b, (number,)) for number, (a, b) in enumerate(pairwise(bounds)))
    return Plan("t", Partition(stages, order), schedule, 8, 4)


PLAN = plan_of(0, 2, 4)


def test_under_other_schedules_a_profile_is_what_it_was() -> None:
    assert headed(PROFILE, plan_of(0, 2, 4, schedule="1f1b-flush")) is PROFILE
    assert heads_of(PROFILE, PLAN) == (LINEAR, None)


@pytest.mark.parametrize(
    ("name", "head"), [("", LINEAR), ("linear", LINEAR), ("similarity", LARGE)]
)
def test_a_head_is_a_part_of_its_stage_s_last_layer(name: str, head: LocalHeadCost) -> None:
    first, last, behind, end = headed(PROFILE, PLAN, name).layers
    assert first == replace(PROFILE.layers[0], local_heads=())
    assert end == replace(PROFILE.layers[3], local_heads=())
    assert last.forward == 1e-3
    assert last.backward == pytest.approx(2e-3 + head.seconds)
    assert last.parameter_bytes == 10**5 + head.parameter_bytes
    assert last.update == pytest.approx(1e-4 + head.update)
    assert last.adding == pytest.approx(head.adding)
    assert last.out_of_place_update == pytest.approx(1e-4 + head.out_of_place_update)
    assert last.work_bytes == head.work_bytes
    assert behind.backward == 1e-3  # the weights' half: nobody asks for its input's gradient


def test_a_run_is_expected_to_do_what_its_own_heads_do() -> None:
    """The plan's prediction has the usual ones."""
    stored, spec = SimpleNamespace(profile_id=7), TrainSpec(1, PLAN, local_head="similarity")
    profiles = {7: SimpleNamespace(profile=PROFILE)}
    stores = SimpleNamespace(profiles=SimpleNamespace(get=profiles.__getitem__))
    found = predicted_durations(profile_of(stores, stored, spec, PLAN), CLUSTER, PLAN)
    usual = predicted_durations(PROFILE, CLUSTER, PLAN)
    more = LARGE.seconds - LINEAR.seconds
    assert found.backward == pytest.approx((usual.backward[0] + more, usual.backward[1]))


def test_in_front_of_the_first_weights_of_a_stage_there_is_no_backward() -> None:
    """Layers 2 and 3 have no weights; 4 has, of which half is taken where halves are not known;
    behind it all is as measured. Layer 5 reads 2 and 4."""
    layers = (layer(0), layer(1), layer(2, 0), layer(3, 0), layer(4), layer(5, 0), layer(6))
    edges = ((0, 1), (1, 2), (2, 3), (3, 4), (2, 5), (4, 5), (5, 6))
    found = headed(Profile("skips", ModelGraph(layers, edges), 8), plan_of(0, 2, 7)).layers
    backward = [each.backward for each in found]
    assert backward == pytest.approx([2e-3, 2e-3 + LINEAR.seconds, 0.0, 0.0, 1e-3, 2e-3, 2e-3])


COSTS = st.floats(0, 1)
DRAWN = st.builds(
    Layer,
    st.just("l"),
    st.just("Linear"),
    COSTS,
    COSTS,
    st.just(8),
    st.sampled_from([0, 400]),
    COSTS,
    backward_input=COSTS,
    backward_weight=COSTS,
    out_of_place_update=COSTS,
    local_heads=st.sampled_from([(), (LINEAR,), (LARGE, LINEAR)]),
)


LONG_HALF = Layer("l", "Linear", 0.0, 0.0, 8, 400, 0.0, backward_input=1.0)


@given(st.lists(DRAWN, min_size=4, max_size=6), st.integers(1, 3))
@example([LONG_HALF] * 4, 1)
def test_what_has_heads_already_gets_no_more(layers: list[Layer], cut: int) -> None:
    named = tuple(replace(each, name=f"l{n}") for n, each in enumerate(layers))
    profile, plan = Profile("p", ModelGraph.chain(named), 8), plan_of(0, cut, len(layers))
    once = headed(profile, plan)
    assert headed(once, plan) == once
    assert all(a.backward >= 0 for a in once.layers)


def test_heads_are_of_cuts_of_the_profile_s_own_order() -> None:
    """Two branches: behind {0, 2} it was never cut when it was measured."""
    edges = ((0, 1), (0, 2), (1, 3), (2, 3))
    profile = replace(PROFILE, graph=ModelGraph(PROFILE.layers, edges))
    assert heads_of(profile, plan_of(0, 2, 4, order=(0, 2, 1, 3))) == (None, None)
    assert heads_of(profile, plan_of(0, 3, 4, order=(0, 2, 1, 3))) == (LINEAR, None)
    turned = headed(profile, plan_of(0, 3, 4, order=(0, 2, 1, 3))).layers
    assert turned[1].parameter_bytes == 10**5 + LINEAR.parameter_bytes  # the stage's last one


def test_seconds_and_memory_of_a_plan_have_them() -> None:
    bare = PROFILE.with_layers(replace(each, local_heads=()) for each in PROFILE.layers)
    with_heads, without = (PlanDurations.of(each, CLUSTER, PLAN) for each in (PROFILE, bare))
    assert with_heads.backward[0] - without.backward[0] == pytest.approx(LINEAR.seconds)
    assert with_heads.backward[1] == without.backward[1]
    assert with_heads.step[0] - without.step[0] == pytest.approx(LINEAR.update)
    shape = steady_shape(PLAN)
    (mine,), (other,) = (
        replica_parts(each, PLAN, shape, "momentum")[0] for each in (PROFILE, bare)
    )
    copies = LINEAR.parameter_bytes
    assert mine.total - other.total == 3 * copies + LINEAR.work_bytes  # with gradient and velocity
    assert mine.weights - other.weights == copies
    slower = predict(PROFILE, CLUSTER, PLAN), predict(bare, CLUSTER, PLAN)
    assert slower[0].seconds_per_minibatch > slower[1].seconds_per_minibatch
    assert slower[0].sent_bytes == slower[1].sent_bytes


def test_they_are_scaled_as_their_layers() -> None:
    half = at_microbatch(PROFILE, 4).layers[0].local_heads[0]
    assert (half.seconds, half.work_bytes, half.flops) == (LINEAR.seconds / 2, 4_500, 500)
    assert (half.parameter_bytes, half.update) == (LINEAR.parameter_bytes, LINEAR.update)
    kept = kept_in(PROFILE, "bfloat16").layers[0].local_heads[0]
    assert (kept.parameter_bytes, kept.seconds) == (LINEAR.parameter_bytes / 2, LINEAR.seconds)


def test_a_plan_says_whether_its_heads_are_predicted() -> None:
    question = Question(PROFILE, CLUSTER, schedule="local")
    said = " ".join(reasons(question, question.predict(PLAN)))
    assert "heads (linear) are predicted too: 500 µs per microbatch" in said.replace("\u00a0", " ")
    bare = PROFILE.with_layers(replace(each, local_heads=()) for each in PROFILE.layers)
    question = replace(question, profile=bare)
    said = " ".join(reasons(question, question.predict(PLAN)))
    assert "not measured the stages' heads" in said
    assert "heads" not in " ".join(reasons(question, question.predict(plan_of(0, 4))))
