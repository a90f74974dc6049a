"""Layers split by channels: AccPar's table, every assignment of types, and what may be split."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.cluster.ring import RingLinks
from backend.planning.channels.exchange import ExchangeSeconds, StageReplicas
from backend.planning.channels.search import cheapest, exchanges
from backend.planning.channels.types import LayerType
from backend.planning.channels.units import ChannelUnit, units
from backend.profiles.crossing import Crossing, TiedWeight
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

ONE, TWO, THREE = LayerType
F, E = 400, 40
PUBLISHED = {
    (ONE, ONE): 0,
    (ONE, TWO): (F + E) / 4,
    (ONE, THREE): F / 2,
    (TWO, ONE): E / 2,
    (TWO, TWO): E / 2,
    (TWO, THREE): 0,
    (THREE, ONE): (F + E) / 4,
    (THREE, TWO): 0,
    (THREE, THREE): F / 2,
}
"""AccPar's elements between layers for halves (Song et al., HPCA 2020)."""


def replicas(*parts, speeds=(), microbatches=1, rounds=1, latency=0.0, bandwidth=1.0):
    links = RingLinks(len(parts), frozenset({(latency, bandwidth)}))
    return StageReplicas(parts, speeds or (1.0,) * len(parts), links, microbatches, rounds)


def unit(weights=0, size=0, made=0, *, joined=True, split=True, follows=0.0):
    return ChannelUnit(0, 1, weights, split, joined, size, size, made, made, made, follows, follows)


@pytest.mark.parametrize("pair", PUBLISHED)
def test_halves_exchange_between_layers_what_is_published(pair):
    found = replicas(0.5, 0.5).between(*pair, F, E)
    assert found.forward + found.backward == PUBLISHED[pair]
    assert found.sums == 0


def test_halves_exchange_inside_a_layer_what_is_published():
    both, layer = replicas(0.5, 0.5), replace(unit(weights=1000, made=F), read_back=E)
    assert both.inside(layer, ONE) == ExchangeSeconds(sums=1000)
    assert both.inside(layer, TWO) == ExchangeSeconds(forward=F)
    assert both.inside(layer, THREE) == ExchangeSeconds(backward=E)


def test_of_unequal_parts_the_replica_that_lacks_most_counts():
    some = replicas(0.25, 0.75)
    assert some.between(ONE, TWO, F, 0).forward == pytest.approx(F * 0.25 * 0.75)
    assert some.between(ONE, THREE, F, 0).forward == pytest.approx(F * 0.75)
    assert some.between(TWO, ONE, 0, E).backward == pytest.approx(E * 0.75)


def test_activations_count_for_each_microbatch_and_latency_for_each_round():
    some = replicas(0.5, 0.5, microbatches=8, rounds=4, latency=1.0)
    assert some.between(ONE, THREE, F, E) == ExchangeSeconds(forward=8 * F / 2 + 4)
    assert some.inside(unit(weights=1000, made=F), TWO).forward == 8 * F + 2 * 4


def test_behind_sums_of_the_output_each_computes_what_follows_for_all():
    """Of 4 microbatches the replica of speed 1/2 has 1 and computes 3 more, in twice the time."""
    some = replicas(0.25, 0.75, speeds=(0.5, 1.5), microbatches=4)
    found = some.inside(unit(follows=1.0), TWO)
    assert (found.forward, found.backward) == pytest.approx((6.0, 6.0))
    assert some.inside(unit(follows=1.0), THREE) == ExchangeSeconds()


@given(st.lists(st.sampled_from(LayerType), min_size=1, max_size=5))
def test_one_replica_exchanges_nothing(kinds):
    layers = [unit(1000, 50, 70, follows=1.0)] * len(kinds)
    found = exchanges(layers, kinds, replicas(1.0, latency=1.0))
    assert found == [ExchangeSeconds()] * len(kinds)


def test_samples_alone_take_the_sums_of_data_parallelism():
    layers = [unit(1000, 50, 70), unit(0, 70, 70), unit(30, 70, 90)]
    found = exchanges(layers, [ONE] * 3, replicas(0.25, 0.25, 0.5))
    sums = [2 * 2 / 3 * each.weights for each in layers]
    assert found == [ExchangeSeconds(sums=pytest.approx(each)) for each in sums]


sizes = st.integers(0, 1000)
drawn_units = st.builds(
    ChannelUnit,
    *(st.just(0), st.just(1), st.integers(0, 5000), st.booleans(), st.booleans()),
    *(sizes, sizes, sizes, sizes, sizes),
    *(st.floats(0, 3), st.floats(0, 3)),
)
drawn_parts = st.lists(st.integers(1, 9), min_size=2, max_size=4).map(
    lambda shares: tuple(own / sum(shares) for own in shares)
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(drawn_units, min_size=1, max_size=5),
    drawn_parts,
    st.sampled_from([1.0, 0.5, 0.0]),
    st.integers(1, 4),
    st.floats(0, 5),
)
def test_no_assignment_of_types_is_cheaper(layers, parts, price, rounds, latency):
    some = replicas(*parts, microbatches=4, rounds=rounds, latency=latency, bandwidth=10.0)

    def cost(kinds):
        found = exchanges(layers, kinds, some)
        return sum(each.forward + each.backward + price * each.sums for each in found)

    ways = product(*(LayerType if each.may_split else (ONE,) for each in layers))
    assert cost(cheapest(layers, some, price)) == pytest.approx(min(map(cost, ways)))


def layer(name, kind, output=100, weights=0, **more):
    return Layer(name, kind, 1.0, 2.0, output, weights, **more)


CLASSIFIER = (
    layer("pool", "MaxPool2d", 80),
    layer("fc6", "Linear", 60, 1000),
    layer("relu6", "ReLU", 60),
    layer("drop6", "Dropout", 60),
    layer("fc7", "Linear", 40, 500),
)


def units_of(*layers, edges=None, crossings=(), ties=()):
    graph = ModelGraph.chain(layers)
    graph = replace(
        graph,
        edges=graph.edges if edges is None else edges,
        crossings=crossings,
        tied_weights=ties,
    )
    return units(Profile("p", graph, 1), 0, len(layers))


def test_a_unit_is_a_layer_with_what_computes_its_channels_one_by_one():
    pool, fc6, fc7 = units_of(*CLASSIFIER)
    assert (pool.may_split, fc6.may_split, fc7.may_split) == (False, True, True)
    assert (fc6.first, fc6.stop, fc6.is_joined, fc7.is_joined) == (1, 4, True, True)
    assert fc6 == ChannelUnit(1, 4, 1000, True, True, 80, 80, 60, 60, 60, 2.0, 4.0)


def test_a_second_reader_ends_a_unit_and_its_tensors_pass_by_samples():
    edges = ((0, 1), (1, 2), (1, 3), (2, 3), (3, 4))
    found = units_of(*CLASSIFIER, edges=edges)
    assert [each.stop - each.first for each in found] == [1, 1, 1, 1, 1]
    assert [each.is_joined for each in found] == [False, True, False, False, True]
    some = replicas(0.5, 0.5)
    behind = some.step((found[1], THREE), found[2], ONE)
    assert behind == ExchangeSeconds(60 / 4, 60 / 4)


@pytest.mark.parametrize(
    ("kind", "more"),
    [("LSTM", {}), ("BatchNorm2d", {}), ("Linear", {"frozen_bytes": 8}), ("Transformer", {})],
)
def test_layers_of_other_kinds_and_frozen_ones_are_not_split(kind, more):
    found = units_of(layer("in", "Input"), layer("one", kind, weights=1000, **more))
    assert not found[1].may_split


def test_tied_weights_and_layers_whose_input_is_unknown_are_not_split():
    first, second = (layer(name, "Linear", weights=1000) for name in ("a", "b"))
    assert [each.may_split for each in units_of(first, second)] == [False, True]
    tie = TiedWeight(1, (2,), "weight", 1000)
    tied = units_of(layer("in", "Input"), first, second, ties=(tie,))
    assert not any(each.may_split for each in tied)


def test_an_embedding_reads_at_most_what_it_makes_and_hands_no_gradient_back():
    (table,) = units_of(layer("words", "Embedding", 64, 10_000))
    assert (table.may_split, table.read, table.read_back) == (True, 64, 0)


def test_gradients_that_do_not_come_back_are_not_exchanged():
    crossings = (Crossing(0, (1,), 70, has_gradient=False), Crossing(1, (2,), 30))
    _, fc, _ = units_of(
        layer("in", "Input"),
        layer("fc", "Linear", 30, 1000),
        layer("end", "LSTM", 30, 8),
        crossings=crossings,
    )
    assert (fc.read, fc.read_back, fc.handed_back) == (70, 0, 30)
    assert replicas(0.5, 0.5).inside(fc, THREE) == ExchangeSeconds()
