"""Every placement: the same ones as by labels of layers and devices, each once where devices are
alike; none where there are too many."""

from itertools import product
from math import factorial, prod

import pytest

from backend.cluster.cluster import Cluster, Device, Level
from backend.prediction.every_placement import FEW_DEVICES, FEW_LAYERS, every_placement
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile


def chain_of(count: int) -> Profile:
    layers = tuple(Layer(f"l{n}", "Linear", 0.0, 1.0, 1, 1) for n in range(count))
    return Profile("chain", ModelGraph.chain(layers), 1)


def unequal(*shape: int) -> Cluster:
    flat = Cluster(tuple(Level(count, 1.0) for count in shape))
    devices = tuple(Device(speed=1.0 + n) for n in range(flat.num_devices))
    return Cluster(flat.levels, devices[0], devices)


def by_labels(layers: int, devices: int) -> int:
    """Placements of a chain on devices that all differ: each device in a stage or idle, the first
    replica of one stage fixed."""
    found = 0
    for cuts in product((False, True), repeat=layers - 1):
        stages = 1 + sum(cuts)
        for labels in product(range(stages + 1), repeat=devices):
            sizes = [labels.count(stage) for stage in range(1, stages + 1)]
            if all(sizes):
                first = next((size for size in sizes if size > 1), 1)
                found += prod(map(factorial, sizes)) // first if stages > 1 else 1
    return found


@pytest.mark.parametrize(("layers", "shape"), [(1, (3,)), (2, (3,)), (3, (2, 2)), (4, (4,))])
def test_each_placement_on_unequal_devices_comes_once(layers, shape):
    cluster = unequal(*shape)
    found = every_placement(chain_of(layers), cluster)
    assert len(found) == len(set(found)) == by_labels(layers, cluster.num_devices)


def test_devices_that_are_alike_are_taken_once():
    found = every_placement(chain_of(2), Cluster((Level(2, 2.0), Level(2, 1.0))))
    whole = [p.stages[0].devices for p in found if len(p.stages) == 1]
    assert whole == [(3,), (2, 3), (1, 3), (1, 2, 3), (0, 1, 2, 3)]


def test_layers_that_do_not_wait_come_in_any_order():
    layers = chain_of(3).layers
    profile = Profile("fork", ModelGraph(layers, ((0, 2),)), 1)
    found = every_placement(profile, Cluster((Level(3, 1.0),)))
    orders = {partition.order or (0, 1, 2) for partition in found}
    assert orders == {(0, 1, 2), (1, 0, 2), (0, 2, 1)}


def test_none_where_there_are_too_many():
    assert not every_placement(chain_of(FEW_LAYERS + 1), unequal(2))
    assert not every_placement(chain_of(1), unequal(FEW_DEVICES + 1))
    assert not every_placement(chain_of(FEW_LAYERS), unequal(FEW_DEVICES))
