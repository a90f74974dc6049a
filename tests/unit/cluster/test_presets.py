"""Clusters known by name."""

import pytest

from backend.cluster.document import read_cluster
from backend.cluster.presets import PRESETS, cluster_a, cluster_b, cluster_c, local, preset
from backend.errors import InvalidInput


def test_the_papers_clusters_have_their_published_links():
    assert [level.bandwidth for level in cluster_a().levels] == [12e9, 1.25e9]
    assert [level.bandwidth for level in cluster_b().levels] == [30e9, 3.125e9]
    assert [level.bandwidth for level in cluster_c().levels] == [5e9]
    assert (cluster_a().num_devices, cluster_b().num_devices, cluster_c().num_devices) == (
        16,
        16,
        4,
    )


def test_local_is_one_level_of_cores():
    assert local(3).num_devices == 3
    assert len(local(3).levels) == 1


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_built_by_name(name):
    assert preset(name, 2).num_devices >= 2


def test_an_unknown_preset_names_the_known_ones():
    with pytest.raises(InvalidInput, match="cluster-x") as refusal:
        preset("cluster-x", 2)
    assert "cluster-a" in refusal.value.advice


def test_a_preset_without_devices_is_refused():
    with pytest.raises(InvalidInput, match="count 0"):
        preset("local", 0)


def test_a_preset_with_its_count_is_a_cluster_wherever_one_is_read():
    assert read_cluster("cluster-a:4\n") == preset("cluster-a", 4)


@pytest.mark.parametrize("text", ["cluster-a", "cluster-a:", "cluster-a:x", "cluster-a: 4", "x:4"])
def test_what_only_looks_like_a_preset_is_read_as_yaml_and_refused(text):
    with pytest.raises(InvalidInput):
        read_cluster(text)


def test_a_preset_without_servers_is_refused_when_it_is_read():
    with pytest.raises(InvalidInput):
        read_cluster("cluster-a:0")
