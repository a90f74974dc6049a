"""Layers as an axis, a partition over it, and the devices below it."""

import pytest

from app.charts import layers, palette
from app.charts.groups import Detail, LayerGroup, groups
from app.charts.layer_costs import layer_costs
from app.charts.memory import OVER, memory
from app.charts.placement import placement
from app.components.partition.partition_editor import drawn
from app.naming import cluster_words
from backend.cluster.cluster import Cluster, Device, Level
from backend.pipeline.memory import Holding
from backend.planning.plan import Partition, Stage
from backend.planning.room import DeviceRoom
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile


def a_profile(num_layers: int, prefix: str = "features") -> Profile:
    layers = tuple(
        Layer(f"{prefix}.{i}", "Conv2d", 1e-3 * (i + 1), 2e-3, 2**20, 2**20 * i)
        for i in range(num_layers)
    )
    return Profile("net", ModelGraph.chain(layers), microbatch=16)


def test_bars_are_stacked_in_network_order_in_a_unit_that_fits() -> None:
    figure = layer_costs(a_profile(3))
    forward, backward, parameters = figure.data
    assert list(forward.y) == pytest.approx([1, 2, 3])
    assert list(backward.y) == pytest.approx([2, 2, 2])
    assert figure.layout.yaxis.title.text == "ms"
    assert parameters.yaxis == "y2"
    assert list(parameters.y) == [0, 1, 2]
    assert figure.layout.yaxis2.domain[1] < figure.layout.yaxis.domain[0]
    assert "features.2" in forward.hovertext[2]
    assert figure.layout.barmode == "stack"


def test_a_model_without_parameters_has_no_second_axis() -> None:
    layer = Layer("act", "ReLU", 1e-3, 1e-3, 10, 0)
    figure = layer_costs(Profile("net", ModelGraph.chain((layer,)), 1))
    assert [trace.name for trace in figure.data] == ["forward", "backward"]


def named(*names: str) -> tuple[LayerGroup, ...]:
    layers = tuple(Layer(name, "Linear", 1e-3, 2e-3, 8, 16 * i) for i, name in enumerate(names))
    return groups(ModelGraph.chain(layers), Detail.LAYERS)


def test_few_layers_are_all_named_and_long_names_shortened() -> None:
    places, names = layers.ticks(named("a", "a.very.long.module.path.of.a.layer"))
    assert places == [0, 1]
    assert names[0] == "a"
    assert len(names[1]) <= layers.LABEL


def test_hundreds_of_layers_are_named_by_module_in_the_middle_of_each() -> None:
    names = [f"blocks.{block}.{part}" for block in range(24) for part in range(10)]
    places, labels = layers.ticks(named(*names))
    assert labels == [f"blocks.{block}" for block in range(24)]
    assert places[:2] == [4.5, 14.5]


def test_the_editor_is_told_the_partition_and_what_each_layer_costs() -> None:
    cut = Partition((Stage(0, 2, (0, 1)), Stage(2, 5, (2,))))
    told = drawn(a_profile(5), cut, 4)
    assert (told["stops"], told["replicas"], told["devices"]) == ([2, 5], [2, 1], 4)
    assert told["forward"] == pytest.approx([1e-3 * (i + 1) for i in range(5)])
    assert told["cuts"] == [2**20] * 4 + [0]


def test_memory_is_beside_its_limit_and_too_much_stands_out() -> None:
    cut = Partition((Stage(0, 2, (0, 1)), Stage(2, 5, (2,))))
    much = Holding(weights=2 * 2**30, process=2**30)
    two = Device("two", 2 * 2**30)
    figure = memory(cut, [DeviceRoom(0, much, two), DeviceRoom(0, Holding(weights=2**30), two)])
    weights, process = figure.data
    assert [weights.name, process.name] == ["weights", "process"]
    over = f'<b style="color:{OVER}">3.00\u00a0GiB</b>'
    assert list(weights.y) == [f"stage 0 ×2  {over}", "stage 1  1.00\u00a0GiB"]
    assert list(weights.x) == pytest.approx([2, 1])
    assert list(process.x) == pytest.approx([1, 0])
    assert "process 1.00\u00a0GiB" in weights.hovertext[0]
    assert [line.x0 for line in figure.layout.shapes] == pytest.approx([2, 2])
    assert not memory(cut, [DeviceRoom(0, much, Device())] * 2).layout.shapes


def test_of_replicas_with_shares_the_one_with_the_least_room_is_named() -> None:
    cut = Partition((Stage(0, 2, (4, 7), (1, 3)),))
    (weights,) = memory(cut, [DeviceRoom(1, Holding(weights=2**30), Device())]).data
    assert "on device 7, which has the least room" in weights.hovertext[0]


def test_devices_wear_the_hue_of_their_stage_and_servers_stand_apart() -> None:
    cluster = Cluster((Level(2, 12e9), Level(2, 1e9)), Device("V100", 16 * 2**30))
    cut = Partition((Stage(0, 2, (0, 1)), Stage(2, 5, (2,))))
    (cells,) = placement(cluster, cut).data
    first, second = palette.stage(0), palette.stage(1)
    assert list(cells.marker.color) == [first, first, second, palette.IDLE]
    (alike,) = placement(cluster, Partition((Stage(0, 5, (0,)),)), sites=2).data
    assert list(alike.marker.color) == [first, palette.IDLE] * 2
    gaps = [right - left for left, right in zip(cells.x, cells.x[1:], strict=False)]
    assert gaps[1] > gaps[0] == gaps[2]
    assert cluster_words(cluster).replace("\u00a0", " ") == (
        "2 servers × 2 V100, 16.0 GiB each, 12.0 GB/s inside, 1.00 GB/s between"
    )
    devices = (Device("V100", 16 * 2**30), Device("T4", 8 * 2**30, 0.5))
    unequal = Cluster((Level(2, 12e9),), devices=devices)
    assert cluster_words(unequal).replace("\u00a0", " ") == (
        "2 × V100 and T4, 8.00 GiB to 16.0 GiB each, speed 0.5 to 1, 12.0 GB/s"
    )
