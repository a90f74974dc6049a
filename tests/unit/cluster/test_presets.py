"""Clusters known by name."""

from pathlib import Path

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


@pytest.mark.parametrize(
    ("name", "inside", "between", "gib"),
    [
        ("dgx-a100", 300e9, 200e9, 80),
        ("dgx-h100", 450e9, 400e9, 80),
        ("dgx-h200", 450e9, 400e9, 141),
        ("dgx-b200", 900e9, 400e9, 180),
        ("aws-p4d", 300e9, 50e9, 40),
        ("aws-p5", 450e9, 400e9, 80),
        ("azure-nd-a100-v4", 300e9, 200e9, 40),
        ("azure-nd-h100-v5", 450e9, 400e9, 80),
        ("gcp-a3-ultra", 450e9, 400e9, 141),
    ],
)
def test_todays_machines_have_one_directions_bandwidth_and_their_memory(name, inside, between, gib):
    cluster = preset(name, 4)
    assert [(level.count, level.bandwidth) for level in cluster.levels] == [
        (8, inside),
        (4, between),
    ]
    assert cluster.device.memory == gib * 2**30
    assert PRESETS[name].source


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


def test_a_count_of_an_unknown_preset_names_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match="no cluster preset 'dgx-z'") as fault:
        read_cluster("dgx-z:4")
    assert "dgx-h100" in str(fault.value.advice)


@pytest.mark.parametrize("text", ["cluster-a", "cluster-a:", "cluster-a:x", "cluster-a: 4", "x:4"])
def test_what_only_looks_like_a_preset_is_read_as_yaml_and_refused(text):
    with pytest.raises(InvalidInput):
        read_cluster(text)


def test_a_preset_without_servers_is_refused_when_it_is_read():
    with pytest.raises(InvalidInput):
        read_cluster("cluster-a:0")


def test_the_guide_says_what_the_presets_are():
    guide = Path("docs/guide/clusters.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in guide.splitlines()]
    told = {row[0].strip("`"): row[1:] for row in rows if len(row) == 6 and row[0][0] == "`"}
    assert set(told) == set(PRESETS) - {"local"}
    for name, (server, inside, between, gib, source) in told.items():
        levels, device = preset(name, 4).levels, preset(name, 4).device
        per_server = levels[0].count if len(levels) == 2 else 1
        assert server == f"{per_server} {device.name}"
        assert between == f"{levels[-1].bandwidth / 1e9:g}"
        assert inside == (f"{levels[0].bandwidth / 1e9:g}" if len(levels) == 2 else "")
        assert gib == (f"{device.memory / 2**30:g}" if device.memory else "")
        assert source == PRESETS[name].source
