"""Which cuts a graph has, and that leaving some out loses nothing."""

from itertools import pairwise

import numpy as np
import pytest
from brute_force import chains, graphs, nested_cuts
from hypothesis import given, settings

from backend.planning.pipedream.candidates import all_ideals
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile


def diamond(width: int, length: int) -> Profile:
    """A source, `width` chains of `length` layers side by side, and a sink."""
    count = width * length + 2
    edges = []
    for branch in range(width):
        chain = [0, *range(1 + branch * length, 1 + (branch + 1) * length), count - 1]
        edges += list(pairwise(chain))
    layers = tuple(Layer(f"l{n}", "Conv2d", 1, 1, 10 + n % 3, 5) for n in range(count))
    return Profile("diamond", ModelGraph(layers, tuple(sorted(edges))), 1)


@settings(max_examples=300)
@given(graphs(6))
def test_every_one_is_a_downset_and_all_are_there_while_they_are_few(profile):
    found = all_ideals(profile)
    kept = {frozenset(np.flatnonzero(row).tolist()) for row in found.members}
    every = {chain[1] for chain in nested_cuts(profile) if len(chain) > 1}
    every |= {frozenset(), frozenset(range(len(profile.layers)))}
    assert kept == every
    assert found.complete


@settings(max_examples=200)
@given(graphs(6) | chains(6))
def test_bytes_and_sums_are_those_of_the_layers_inside(profile):
    found = all_ideals(profile)
    learns = {tensor.producer for tensor in profile.graph.tensors if tensor.has_gradient}
    last = len(profile.layers)
    columns = (found.members, found.cut_bytes, found.exchanged_bytes, found.one_way, found.compute)
    for row, cut, both, one_way, compute in zip(*columns, strict=True):
        inside = set(np.flatnonzero(row).tolist())
        alive = {a for a, b in profile.graph.edges if a in inside and b not in inside}
        assert cut == sum(profile.layers[n].output_bytes for n in alive)
        assert both == cut + sum(profile.layers[n].output_bytes for n in alive & learns)
        assert one_way == (0 < len(inside) < last and not alive & learns)
        assert compute == pytest.approx(sum(profile.layers[n].compute for n in inside))


def test_nested_means_proper_subset():
    found = all_ideals(diamond(2, 2))
    for a, first in enumerate(found.members):
        for b, second in enumerate(found.members):
            assert found.nested[a, b] == (bool((first <= second).all()) and a != b)


def test_an_order_takes_the_layers_of_each_downset_first():
    found = all_ideals(diamond(2, 2))
    branch = next(n for n, row in enumerate(found.members) if row.sum() == 3 and row[3] and row[4])
    assert found.order([branch, len(found) - 1]) == (0, 3, 4, 1, 2, 5)
    assert found.order([len(found) - 1]) == ()
