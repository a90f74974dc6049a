"""Where a model graph can be cut: ideals of its layers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from backend.planning.cost import Floats
from backend.profiles.crossing import Crossing
from backend.profiles.profile import ModelGraph, Profile

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Ideals:
    """Sets of layers that hold, with a layer, all that it reads; the smallest first.

    The first is empty, the last is the model. Any two nested ones have a stage between them,
    whose costs are sums over its layers: differences of the sums kept here.

    members    which layers each holds, a matrix [ideal, layer]
    complete   whether an optimal plan can be made of them (all are here, or all that count)
    """

    profile: Profile
    members: Bools
    complete: bool

    def __len__(self) -> int:
        return len(self.members)

    @cached_property
    def is_chain(self) -> bool:
        distinct = len(self) == len(np.unique(self.members.sum(axis=1)))
        return distinct and bool((self.members[:-1] <= self.members[1:]).all())

    @cached_property
    def compute(self) -> Floats:
        """Seconds of each ideal's layers on the profiled device, updates included."""
        return self._sum([layer.compute_and_update for layer in self.profile.layers])

    @cached_property
    def parameters(self) -> Floats:
        """Bytes of parameters; `outputs` likewise, of all the layers' outputs; `held_once`, of
        frozen weights and buffers."""
        return self._sum([layer.parameter_bytes for layer in self.profile.layers])

    @cached_property
    def outputs(self) -> Floats:
        return self._sum([layer.activation_bytes for layer in self.profile.layers])

    @cached_property
    def held_once(self) -> Floats:
        return self._sum([layer.constant_bytes for layer in self.profile.layers])

    @cached_property
    def cut_bytes(self) -> Floats:
        """Bytes alive across the cut behind each: tensors made inside and read outside."""
        return self._alive((tensor, tensor.bytes) for tensor in self.profile.graph.tensors)

    @cached_property
    def exchanged_bytes(self) -> Floats:
        """The same with the gradients that come back."""
        tensors = self.profile.graph.tensors
        return self._alive((tensor, tensor.exchanged_bytes) for tensor in tensors)

    @cached_property
    def one_way(self) -> Bools:
        """Whether no gradient comes back over the cut behind each."""
        tensors = self.profile.graph.tensors
        found = self._alive((tensor, 1) for tensor in tensors if tensor.has_gradient) == 0
        found[[0, -1]] = False
        return np.asarray(found)

    def _alive(self, tensors: Iterable[tuple[Crossing, int]]) -> Floats:
        """The sum of the numbers of those tensors that are made inside each and read outside."""
        alive = np.zeros(len(self))
        if self._are_all_prefixes:
            for tensor, number in tensors:
                alive[tensor.producer + 1] += number
                alive[max(tensor.readers) + 1] -= number
            return np.asarray(alive.cumsum())
        columns = np.ascontiguousarray(self.members.T)
        for tensor, number in tensors:
            read = columns[list(tensor.readers)].all(axis=0)
            alive += (columns[tensor.producer] & ~read) * float(number)
        return alive

    @property
    def compute_most(self) -> Floats:
        """The most seconds of what each stands for: itself."""
        return self.compute

    def weights(self, firsts: Ints, stop: int) -> Floats:
        """Parameter bytes of the stages between `firsts` and `stop`; `kept` likewise, of the
        outputs that they hold, `constants` of what they hold once; `at_work` the most of a
        layer that works."""
        return np.asarray(self.parameters[stop] - self.parameters[firsts])

    def kept(self, firsts: Ints, stop: int) -> Floats:
        return np.asarray(self.outputs[stop] - self.outputs[firsts])

    def constants(self, firsts: Ints, stop: int) -> Floats:
        return np.asarray(self.held_once[stop] - self.held_once[firsts])

    def at_work(self, firsts: Ints, stop: int) -> Floats:
        layers, most = self._hardest_first
        if not len(layers):
            return np.zeros(len(firsts))
        inside = self.members[stop, layers] & ~self.members[np.ix_(firsts, layers)]
        return np.asarray(np.where(inside.any(axis=1), most[inside.argmax(axis=1)], 0.0))

    @cached_property
    def _hardest_first(self) -> tuple[Ints, Floats]:
        """The layers whose work was measured, and its bytes, most first."""
        work = np.array([layer.work_bytes or 0 for layer in self.profile.layers], dtype=np.float64)
        order = np.argsort(-work, kind="stable")[: np.count_nonzero(work)]
        return order, work[order]

    def nested_in(self, firsts: Ints, stop: int) -> Bools:
        """Which of `firsts`, all of them before it, are proper subsets of `stop`."""
        if self.is_chain or stop == len(self) - 1:
            return np.ones(len(firsts), dtype=np.bool_)
        return np.asarray(self.nested[firsts, stop])

    @cached_property
    def nested(self) -> Bools:
        """[a, b]: a is a proper subset of b."""
        if self.is_chain:
            return np.triu(np.ones((len(self), len(self)), dtype=bool), 1)
        counts = self.members.astype(np.float32)
        common = counts @ counts.T
        sizes = counts.sum(axis=1)
        return np.asarray((common == sizes[:, None]) & (sizes[:, None] < sizes[None, :]))

    def lightest(self, most: int) -> "Ideals":
        """About `most` of them: of those with like compute one with the fewest bytes, and both
        ends."""
        if len(self) <= most:
            return self
        place = self.compute / max(self.compute[-1], 1e-300) * (most - 2)
        window = np.clip(np.floor(place).astype(np.int64), 0, most - 3)
        window[[0, -1]] = -1, most
        order = np.lexsort((self.exchanged_bytes, window))
        chosen = np.sort(order[np.flatnonzero(np.diff(window[order], prepend=-2))])
        return Ideals(self.profile, self.members[chosen], complete=False)

    def order(self, chain: Iterable[int]) -> tuple[int, ...]:
        """The layers in an order in which each ideal of `chain` comes first; empty where
        the profile's own order is one."""
        done = np.zeros(self.members.shape[1], dtype=bool)
        order: list[int] = []
        for place in chain:
            order += np.flatnonzero(self.members[place] & ~done).tolist()
            done = self.members[place]
        return () if order == sorted(order) else tuple(order)

    def _sum(self, values: Sequence[float]) -> Floats:
        if self._are_all_prefixes:
            return np.concatenate([[0.0], np.cumsum(np.array(values, dtype=np.float64))])
        return np.asarray(self.members @ np.array(values, dtype=np.float64))

    @cached_property
    def _are_all_prefixes(self) -> bool:
        """Whether they are those of the profile's own order."""
        own = own_order(self.members.shape[1])
        return self.members.shape == own.shape and bool((self.members == own).all())


def own_order(count: int) -> Bools:
    """The prefixes of the profile's own order, the empty one first."""
    return np.tril(np.ones((count + 1, count), dtype=bool), -1)


def is_chain(graph: ModelGraph) -> bool:
    """Whether every ideal is a prefix of the only topological order."""
    return set(graph.edges) >= {(n, n + 1) for n in range(len(graph.layers) - 1)}


def smallest_first(members: Bools) -> Bools:
    """The rows of `members`, each once, in an order in which a subset comes first."""
    packed = np.unique(np.packbits(members, axis=1), axis=0)
    rows = np.unpackbits(packed, axis=1, count=members.shape[1]).astype(np.bool_)
    return np.asarray(rows[np.argsort(rows.sum(axis=1), kind="stable")])
