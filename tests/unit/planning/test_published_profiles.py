"""The planner on the profiles that PipeDream's authors published."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from backend.cluster.cluster import Cluster, Level
from backend.cluster.presets import cluster_a, cluster_b, cluster_c
from backend.planning.cost import Chain, stage_seconds
from backend.planning.pipedream_dp import bottleneck_seconds, pipedream
from backend.profiles.graph_txt import read_graph
from backend.profiles.profile import ModelGraph, Profile

PUBLISHED = Path(__file__).resolve().parents[3] / "../shared/profiles"
pytestmark = pytest.mark.skipif(
    not PUBLISHED.is_dir(), reason="the published profiles are not beside the repository"
)


def load(model: str) -> Profile:
    return read_graph((PUBLISHED / model / "graph.txt").read_text(), model)


def at_half_the_batch(profile: Profile) -> Profile:
    """Compute and activations in proportion to the batch; weights do not change."""
    layers = tuple(
        replace(
            layer,
            forward=layer.forward / 2,
            backward=layer.backward / 2,
            output_bytes=layer.output_bytes // 2,
        )
        for layer in profile.layers
    )
    return replace(profile, graph=ModelGraph(layers, profile.graph.edges))


def data_parallel_seconds(profile: Profile, cluster: Cluster) -> float:
    chain, (level,) = Chain(profile, cluster.device), cluster.levels
    return float(
        stage_seconds(chain.compute[-1], chain.parameters[-1], level.count, level.bandwidth)
    )


@pytest.mark.parametrize(("bandwidth", "speedup"), [(1.25e9, 4.70), (3.125e9, 1.96)])
def test_vgg16_at_batch_64_on_16_flat_devices_is_15_1(bandwidth, speedup):
    profile = at_half_the_batch(load("vgg16"))
    cluster = Cluster((Level(16, bandwidth),))
    assert pipedream(profile, cluster).label == "15-1"
    gain = data_parallel_seconds(profile, cluster) / bottleneck_seconds(profile, cluster)
    assert gain == pytest.approx(speedup, abs=0.005)


def test_vgg16_as_published_on_16_flat_devices_is_15_1():
    assert pipedream(load("vgg16"), Cluster((Level(16, 1.25e9),))).label == "15-1"


def test_alexnet_keeps_its_dense_layers_off_the_replicas():
    profile, cluster = load("alexnet"), Cluster((Level(16, 1.25e9),))
    partition = pipedream(profile, cluster)
    assert partition.label == "15-1"
    dense = [n for n, layer in enumerate(profile.layers) if layer.kind == "Linear"]
    assert partition.stages[1].first <= dense[0]


def test_resnet50_is_left_to_data_parallelism():
    assert pipedream(load("resnet50"), Cluster((Level(16, 1.25e9),))).label == "16"


@pytest.mark.parametrize("model", ["alexnet", "vgg16", "resnet50", "densenet121", "gnmt_large"])
@pytest.mark.parametrize("build", [cluster_a, cluster_b, cluster_c])
def test_every_plan_is_finite_and_lies_between_its_bounds(model, build):
    profile, cluster = load(model), build()
    seconds = bottleneck_seconds(profile, cluster)
    assert np.isfinite(seconds)
    assert profile.compute / cluster.num_devices <= seconds * (1 + 1e-9)
    assert pipedream(profile, cluster).num_devices == cluster.num_devices
