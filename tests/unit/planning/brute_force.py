"""Every plan there is, written out: what the planner must not be worse than."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, pairwise

from hypothesis import strategies as st

from backend.cluster.cluster import Cluster, Level
from backend.planning.plan import Partition, Stage
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

numbers = st.integers(0, 20)
held_once = st.sampled_from((0, 0, 0, 40))
layers = st.builds(
    Layer,
    st.just("l"),
    st.just("Linear"),
    *(numbers, numbers, numbers, numbers),
    buffer_bytes=held_once,
    frozen_bytes=held_once,
    work_bytes=st.sampled_from((None, 0, 0, 30)),
)


@st.composite
def chains(draw, most):
    found = tuple(draw(st.lists(layers, min_size=1, max_size=most)))
    return draw(frozen(Profile("random", ModelGraph.chain(found), 1)))


@st.composite
def frozen(draw, profile):
    """Every second time the profile with its first layers frozen: they have no backward and no
    update, and what they make has no gradient; of others a tensor may have none either."""
    if draw(st.booleans()):
        return profile
    count = draw(st.integers(0, len(profile.layers)))
    layers = tuple(
        replace(
            layer,
            backward=0.0,
            update=0.0,
            parameter_bytes=0,
            frozen_bytes=layer.frozen_bytes + layer.parameter_bytes,
        )
        if number < count
        else layer
        for number, layer in enumerate(profile.layers)
    )
    tensors = tuple(
        replace(tensor, has_gradient=tensor.producer >= count and draw(st.integers(0, 5)) > 0)
        for tensor in profile.graph.tensors
    )
    return replace(profile, graph=replace(profile.graph, layers=layers, crossings=tensors))


@st.composite
def graphs(draw, most):
    """Random graphs in topological order; about a third of the layers cost nothing."""
    count = draw(st.integers(1, most))
    nodes = []
    for _ in range(count):
        layer = draw(layers)
        free = draw(st.integers(0, 2)) == 0
        view = Layer("l", "view", 0, 0, layer.output_bytes, 0, frozen_bytes=layer.frozen_bytes)
        nodes.append(view if free else layer)
    pairs = list(combinations(range(count), 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return draw(frozen(Profile("random", ModelGraph(tuple(nodes), tuple(sorted(edges))), 1)))


def clusters(*most):
    """One level per entry, of at most so many members."""
    levels = [st.builds(Level, st.integers(1, m), st.integers(1, 20).map(float)) for m in most]
    return st.tuples(*levels).map(Cluster)


def nested_cuts(profile: Profile) -> Iterator[tuple[frozenset[int], ...]]:
    """Every chain of ideals from nothing to the whole model."""
    count = len(profile.layers)
    inputs = [{a for a, b in profile.graph.edges if b == n} for n in range(count)]
    sets = [
        frozenset(n for n in range(count) if mask >> n & 1)
        for mask in range(2**count)
        if all(
            inputs[n] <= {m for m in range(count) if mask >> m & 1}
            for n in range(count)
            if mask >> n & 1
        )
    ]
    whole = frozenset(range(count))

    def grow(chain):
        if chain[-1] == whole:
            yield chain
            return
        for found in sets:
            if chain[-1] < found:
                yield from grow((*chain, found))

    yield from grow((frozenset(),))


def placements(sizes, cluster: Cluster, place=0, device=0) -> Iterator[tuple[Stage, ...]]:
    """Stages that end at `sizes`: side by side, devices left idle anywhere, and runs of them
    copied over machines."""
    if place == len(sizes) - 1:
        yield ()
        return
    for start in range(device, cluster.num_devices):
        for stop in range(start + 1, cluster.num_devices + 1):
            stage = Stage(sizes[place], sizes[place + 1], tuple(range(start, stop)))
            for rest in placements(sizes, cluster, place + 1, stop):
                yield stage, *rest
        yield from copied(sizes, cluster, place, start)


def copied(sizes, cluster: Cluster, place: int, start: int) -> Iterator[tuple[Stage, ...]]:
    if len(cluster.levels) < 2 or start % cluster.sizes[1]:
        return
    block = cluster.sizes[1]
    for machines in range(2, (cluster.num_devices - start) // block + 1):
        for end in range(place + 2, len(sizes)):
            for shares in within(end - place, block):
                run = tuple(
                    Stage(
                        sizes[place + n],
                        sizes[place + n + 1],
                        tuple(
                            start + at + m * block for at in range(a, b) for m in range(machines)
                        ),
                    )
                    for n, (a, b) in enumerate(shares)
                )
                for rest in placements(sizes, cluster, end, start + machines * block):
                    yield *run, *rest


def within(count: int, block: int) -> Iterator[list[tuple[int, int]]]:
    """`count` stages side by side on one machine."""
    for used in range(count, block + 1):
        for cuts in combinations(range(1, used), count - 1):
            yield list(pairwise((0, *cuts, used)))


def every_plan(profile: Profile, cluster: Cluster) -> Iterator[Partition]:
    for chain in nested_cuts(profile):
        if len(chain) - 1 > cluster.num_devices:
            continue
        order = tuple(n for a, b in pairwise(chain) for n in sorted(b - a))
        for stages in placements([len(found) for found in chain], cluster):
            yield Partition(stages, () if order == tuple(sorted(order)) else order)
