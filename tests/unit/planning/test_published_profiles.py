"""The planner on the profiles that PipeDream's authors published."""

import numpy as np
import pytest
from published import FOLDER, MODELS, answers, at_batch, load

from backend.cluster.cluster import Cluster, Level
from backend.cluster.presets import cluster_a, cluster_b, cluster_c
from backend.planning.baselines import data_parallel
from backend.planning.pipedream.bottleneck import bottleneck
from backend.planning.pipedream.candidates import all_ideals
from backend.planning.pipedream.planner import optimum, pipedream
from backend.profiles.profile import Profile

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="the published profiles are not beside the repository"
)
FLAT_10_GBIT = Cluster((Level(16, 1.25e9),))
FLAT_25_GBIT = Cluster((Level(16, 3.125e9),))


def gain(profile: Profile, cluster: Cluster) -> float:
    """Over data parallelism, by the cost model."""
    alone = bottleneck(profile, cluster, data_parallel(profile, cluster))
    return alone / optimum(profile, cluster).seconds


@pytest.mark.parametrize("overlap", [True, False])
def test_our_plan_is_never_worse_than_the_published_one(overlap):
    for answer in answers():
        ours = optimum(load(answer.model), answer.cluster, overlap)
        theirs = answer.seconds(overlap)
        assert ours.seconds <= theirs * (1 + 1e-9), answer
        assert ours.lower_bound == pytest.approx(ours.seconds), answer
        if answer.wastes:
            assert ours.seconds < theirs * 0.99, answer


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("cluster", [cluster_a(), cluster_b(), cluster_c(), FLAT_10_GBIT])
def test_every_cut_is_nested_and_every_device_has_one_stage(model, cluster):
    profile = load(model)
    partition = pipedream(profile, cluster)
    ordered = profile.in_order(partition.order)  # refuses an order that is not topological
    assert sorted(layer.name for layer in ordered.layers) == sorted(
        layer.name for layer in profile.layers
    )
    used = [device for stage in partition.stages for device in stage.devices]
    assert len(used) == len(set(used)) <= cluster.num_devices


@pytest.mark.parametrize(
    ("cluster", "speedup"), [(FLAT_10_GBIT, 4.70), (FLAT_25_GBIT, 1.96), (cluster_a(), 4.70)]
)
def test_vgg16_at_batch_64_on_16_devices_is_15_1(cluster, speedup):
    profile = at_batch(load("vgg16"), 64)
    assert pipedream(profile, cluster).label == "15-1"
    assert gain(profile, cluster) == pytest.approx(speedup, abs=0.005)


def test_alexnet_keeps_its_dense_layers_off_the_replicas():
    profile = load("alexnet")
    partition = pipedream(profile, cluster_a())
    assert partition.label == "15-1"
    dense = [n for n, layer in enumerate(profile.layers) if layer.kind == "Linear"]
    assert partition.stages[1].first <= dense[0]


@pytest.mark.parametrize("model", ["resnet50", "densenet121", "inception_v3"])
def test_what_has_few_weights_is_left_to_data_parallelism(model):
    assert pipedream(load(model), cluster_a()).label == "16"


def test_gnmt_is_cut_into_a_pipeline():
    assert gain(load("gnmt_large"), cluster_a()) > 5


def test_the_translation_model_needs_few_of_its_cuts():
    """Its 1,495 antichain states differ mostly in layers that cost nothing."""
    assert len(all_ideals(load("gnmt_large"))) < 200


@pytest.mark.parametrize(
    "levels", [((16, 1.25e8),), ((4, 1.2e8), (4, 1.25e7)), ((4, 1.2e9), (4, 1.25e8))]
)
def test_a_graph_with_too_many_cuts_is_planned_with_a_tight_bound(levels):
    """Inception-v3 has 221,564 antichain states; slow links leave few that could be cut at."""
    assert all_ideals(load("inception_v3")) is None
    plan = optimum(load("inception_v3"), Cluster(tuple(Level(*level) for level in levels)))
    assert plan.gap < 0.005


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("build", [cluster_a, cluster_b, cluster_c])
def test_every_plan_is_finite_and_lies_between_its_bounds(model, build):
    profile, cluster = load(model), build()
    plan = optimum(profile, cluster)
    assert np.isfinite(plan.seconds)
    assert profile.compute / cluster.num_devices <= plan.seconds * (1 + 1e-9)
    assert plan.seconds <= profile.compute
