"""Where a model graph can be cut: its downsets, as many as are worth looking at."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backend.planning.cost import Floats
from backend.profiles.profile import ModelGraph, Profile

MOST = 2000
"""Downsets that are all enumerated; a graph with more keeps the cheapest of each size."""


@dataclass(frozen=True)
class Downsets:
    """Sets of layers that hold, with a layer, all that it reads; the smallest first.

    The first is empty, the last is the model. Any two nested ones have a stage between them,
    whose costs are sums over its layers: differences of the sums kept here.

    members    which layers each holds, a matrix [downset, layer]
    complete   whether an optimal plan can be made of them (all are here, or all that count)
    """

    profile: Profile
    members: NDArray[np.bool_]
    complete: bool

    def __len__(self) -> int:
        return len(self.members)

    @cached_property
    def is_chain(self) -> bool:
        return len(self) == len(np.unique(self.members.sum(axis=1)))

    @cached_property
    def compute(self) -> Floats:
        """Seconds of each downset's layers on the profiled device, updates included."""
        return self._sum([layer.compute + layer.update for layer in self.profile.layers])

    @cached_property
    def parameters(self) -> Floats:
        """Bytes of parameters; `outputs` likewise, of all the layers' outputs."""
        return self._sum([layer.parameter_bytes for layer in self.profile.layers])

    @cached_property
    def outputs(self) -> Floats:
        return self._sum([layer.activation_bytes for layer in self.profile.layers])

    @cached_property
    def cut_bytes(self) -> Floats:
        """Bytes alive across the cut behind each: outputs made inside and read outside. The
        graph itself says those of its own order, which it may know more exactly."""
        read = np.zeros(self.members.shape, dtype=bool)
        for producer, consumer in self.profile.graph.edges:
            read[:, producer] |= ~self.members[:, consumer]
        sizes = np.array([layer.output_bytes for layer in self.profile.layers], dtype=np.float64)
        alive = (self.members & read) @ sizes
        counts = self.members.sum(axis=1)
        own = (self.members == (np.arange(len(sizes)) < counts[:, None])).all(axis=1)
        alive[own] = np.array((0, *self.profile.graph.cut_bytes))[counts[own]]
        return np.asarray(alive)

    @cached_property
    def nested(self) -> NDArray[np.bool_]:
        """[a, b]: a is a proper subset of b."""
        if self.is_chain:
            return np.triu(np.ones((len(self), len(self)), dtype=bool), 1)
        counts = self.members.astype(np.float32)
        common = counts @ counts.T
        sizes = counts.sum(axis=1)
        return np.asarray((common == sizes[:, None]) & (sizes[:, None] < sizes[None, :]))

    def keep(self, chosen: NDArray[Any] | Sequence[int]) -> "Downsets":
        """Only the chosen ones (indices, ascending)."""
        return Downsets(self.profile, self.members[chosen], self.complete)

    def order(self, chain: Iterable[int]) -> tuple[int, ...]:
        """The layers in an order in which each downset of `chain` comes first; empty where
        the profile's own order is one."""
        done = np.zeros(self.members.shape[1], dtype=bool)
        order: list[int] = []
        for place in chain:
            order += np.flatnonzero(self.members[place] & ~done).tolist()
            done = self.members[place]
        return () if order == sorted(order) else tuple(order)

    def _sum(self, values: Sequence[float]) -> Floats:
        if self.members.shape[0] == self.members.shape[1] + 1 and self._is_own_order:
            return np.concatenate([[0.0], np.cumsum(np.array(values, dtype=np.float64))])
        return np.asarray(self.members @ np.array(values, dtype=np.float64))

    @cached_property
    def _is_own_order(self) -> bool:
        count = self.members.shape[1]
        return bool((self.members == own_order(count)).all())


def downsets(profile: Profile, most: int = MOST) -> Downsets:
    """The downsets of `profile`'s graph: all where there are up to `most`.

    Of more, first the layers without compute and weights take the place that is best for
    every plan (`_Elements`); if there still are more, those of each size with the fewest
    bytes alive are kept, and the prefixes of the profile's own order.
    """
    graph = profile.graph
    if is_chain(graph):
        return Downsets(profile, own_order(len(graph.layers)), complete=True)
    for free in (False, True):
        found = _enumerate(_Elements(graph, free), most)
        if found is not None:
            return Downsets(profile, _matrix(graph, found), complete=True)
    width = max(2, most // len(graph.layers))
    found = _enumerate(_Elements(graph, True), None, width)
    assert found is not None
    return Downsets(profile, _matrix(graph, found), complete=False)


def own_order(count: int) -> NDArray[np.bool_]:
    """The prefixes of the profile's own order, the empty one first."""
    return np.tril(np.ones((count + 1, count), dtype=bool), -1)


def is_chain(graph: ModelGraph) -> bool:
    """Whether every downset is a prefix of the only topological order."""
    return set(graph.edges) >= {(n, n + 1) for n in range(len(graph.layers) - 1)}


class _Elements:
    """The layers to choose from, as bits, each with those that must come before it.

    With `free`, layers that cost no compute and have no weights are placed by rule and not
    chosen, which no plan's bottleneck loses by: a source (or what is made of sources alone, and
    no smaller than those that others read too) comes with its first reader; a layer whose
    output is no larger than the inputs that only it reads comes with them.
    """

    def __init__(self, graph: ModelGraph, free: bool) -> None:
        count = len(graph.layers)
        self.sizes = [layer.output_bytes for layer in graph.layers]
        self.readers = [0] * count
        self.inputs: list[list[int]] = [[] for _ in range(count)]
        for producer, consumer in graph.edges:
            self.readers[producer] |= 1 << consumer
            self.inputs[consumer].append(producer)
        self.count = count
        self.late: set[int] = set()
        for layer in range(count if free else 0):
            if self._is_late(graph, layer):
                self.late.add(layer)
        self.early = {n for n in range(count) if free and self._is_early(graph, n)}
        chosen = [n for n in range(count) if n not in self.late | self.early]
        self.needs = self._needs(chosen)
        self.after: dict[int, list[int]] = {n: [] for n in chosen}
        for layer, needed in self.needs.items():
            for other in _bits(needed):
                self.after[other].append(layer)

    def _is_late(self, graph: ModelGraph, layer: int) -> bool:
        if not self._is_free(graph, layer) or not self.readers[layer]:
            return False
        shared = (self.sizes[n] for n in self.inputs[layer] if self.readers[n] != 1 << layer)
        return self.late.issuperset(self.inputs[layer]) and self.sizes[layer] >= sum(shared)

    def _is_early(self, graph: ModelGraph, layer: int) -> bool:
        inputs = self.inputs[layer]
        if not self._is_free(graph, layer) or not inputs or self.late.intersection(inputs):
            return False
        made = self.sizes[layer] if self.readers[layer] else 0
        own = [n for n in inputs if self.readers[n] == 1 << layer]
        return made <= sum(self.sizes[n] for n in own)

    @staticmethod
    def _is_free(graph: ModelGraph, layer: int) -> bool:
        found = graph.layers[layer]
        return not (found.compute or found.update or found.parameter_bytes)

    def _needs(self, chosen: Sequence[int]) -> dict[int, int]:
        """The chosen layers that each chosen one waits for, through those placed by rule."""
        through: list[int] = []
        needs: dict[int, int] = {}
        for layer in range(self.count):
            mask = 0
            for before in self.inputs[layer]:
                mask |= through[before]
            needs[layer] = mask
            through.append(mask if layer in self.early | self.late else 1 << layer)
        return {layer: needs[layer] for layer in chosen}

    def close(self, chosen: int) -> int:
        """`chosen` with the layers that are placed by rule."""
        full = chosen
        for layer in sorted(self.late, reverse=True):
            if self.readers[layer] & full:
                full |= 1 << layer
        for layer in sorted(self.early):
            if all(full >> n & 1 for n in self.inputs[layer]):
                full |= 1 << layer
        return full

    def alive(self, full: int) -> int:
        return sum(self.sizes[n] for n in _bits(full) if self.readers[n] & ~full)


def _enumerate(elements: _Elements, most: int | None, width: int | None = None) -> set[int] | None:
    """Closed downsets as bits; None where there are more than `most`. With `width`, that many
    of each size, those with the fewest bytes alive."""
    ready = [n for n, needed in elements.needs.items() if not needed]
    layer: dict[int, frozenset[int]] = {0: frozenset(ready)}
    found: set[int] = {0}
    while layer:
        following: dict[int, frozenset[int]] = {}
        for chosen, available in layer.items():
            for element in available:
                grown = chosen | 1 << element
                if grown not in following:
                    opened = (n for n in elements.after[element] if not elements.needs[n] & ~grown)
                    following[grown] = (available - {element}).union(opened)
        if width is not None and len(following) > width:
            cheapest = sorted(following, key=lambda s: (elements.alive(elements.close(s)), s))
            following = {chosen: following[chosen] for chosen in cheapest[:width]}
        found |= {elements.close(chosen) for chosen in following}
        if most is not None and len(found) > most:
            return None
        layer = following
    return found


def _matrix(graph: ModelGraph, found: set[int]) -> NDArray[np.bool_]:
    """The downsets and the prefixes of the profile's own order, as a matrix, smallest first."""
    count = len(graph.layers)
    every = sorted(found.union((1 << n) - 1 for n in range(count + 1)), key=_size_first)
    words = (count + 7) // 8
    packed = np.frombuffer(b"".join(mask.to_bytes(words, "little") for mask in every), np.uint8)
    bits = np.unpackbits(packed.reshape(-1, words), axis=1, count=count, bitorder="little")
    return bits.astype(bool)


def _size_first(mask: int) -> tuple[int, int]:
    return mask.bit_count(), mask


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
