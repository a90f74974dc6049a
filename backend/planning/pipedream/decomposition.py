"""The ideals of one block of a graph: what each holds and costs, branches side by side."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from backend.planning.cost import Floats
from backend.planning.pipedream.partial_order import PartialOrder, bits, ideals_of, parts
from backend.profiles.profile import Profile

Bools = NDArray[np.bool_]
GRAIN = 2.0**40
"""Compute and weights as whole numbers, so many to the model: sums of them are exact, so that
an ideal's key is never above that of one that holds it."""
SIDE = 256
"""Columns of one branch where branches are merged one after another."""

MOST_BITS = 2**25
"""Layers times ideals of one branch that are listed: a byte each, and eight while they are added
up."""


@dataclass(frozen=True, slots=True)
class States:
    """Ideals that differ in the layers `inside` alone, column by column.

    before  layers that all of them hold, as a mask over the model
    layers  of the block; `inside[n, k]`: whether ideal k holds the n-th of them
    key     [2, k]: compute and weights (`GRAIN`), never above those of an ideal that holds it
    low, high   [3, k]: seconds, parameter bytes, output bytes, between which all ideals are
                that column k stands for (equal where it is one alone)
    exchanged_bytes   no fewer cross the cut of any of them, there and back
    whole       whether every ideal of the block is stood for
    exact       whether each is here by itself
    """

    before: int
    layers: tuple[int, ...]
    inside: Bools
    key: Floats
    low: Floats
    high: Floats
    exchanged_bytes: Floats
    whole: bool = True
    exact: bool = True

    def __len__(self) -> int:
        return int(self.inside.shape[1])

    def keep(self, columns: NDArray[np.int64]) -> "States":
        return replace(
            self,
            inside=self.inside[:, columns],
            key=self.key[:, columns],
            low=self.low[:, columns],
            high=self.high[:, columns],
            exchanged_bytes=self.exchanged_bytes[columns],
        )

    def on(self, base: Floats) -> "States":
        """With the costs of what all of them hold, [3, 1]."""
        return replace(self, low=self.low + base, high=self.high + base)


def merged(states: States, most: int) -> States:
    """At most `most` columns: those with like keys become one, the cheapest of them stands for
    all. The grid is as fine as that allows."""
    if len(states) <= most:
        return states
    key = _coarse(states.key, most)
    order = np.lexsort((states.exchanged_bytes, key[1], key[0]))
    new = (np.diff(key[:, order], axis=1, prepend=-1.0) != 0).any(axis=0)
    starts = np.flatnonzero(new)
    kept = states.keep(order[starts])
    return replace(
        kept,
        key=key[:, order[starts]],
        low=np.minimum.reduceat(states.low[:, order], starts, axis=1),
        high=np.maximum.reduceat(states.high[:, order], starts, axis=1),
        exact=False,
    )


def _coarse(key: Floats, most: int) -> Floats:
    """`key` on the finest grid with at most `most` cells; what was not above stays so."""
    low = key.min(axis=1, keepdims=True)
    span = np.maximum(key.max(axis=1, keepdims=True) - low, 1.0)
    found, fine = np.broadcast_to(low, key.shape), 2
    while fine <= 2**16:
        place = np.minimum(np.floor((key - low) / span * fine), fine - 1)
        if len(np.unique(place[0] * fine + place[1])) > most:
            break
        found, fine = low + np.floor(place * span / fine), fine * 2
    return np.asarray(found)


@dataclass(frozen=True)
class Model:
    """A profile with what its blocks ask of it: the layers to choose from, the costs of each,
    and its tensors as (producer, readers as a mask, bytes there and back)."""

    profile: Profile
    elements: PartialOrder

    @cached_property
    def costs(self) -> Floats:
        """[3, layer]: seconds (updates included), parameter bytes, output bytes."""
        return np.array(
            [
                (layer.compute_and_update, layer.parameter_bytes, layer.activation_bytes)
                for layer in self.profile.layers
            ],
            dtype=np.float64,
        ).T

    @cached_property
    def grains(self) -> Floats:
        """[2, layer]: seconds and parameter bytes in whole grains."""
        totals = np.maximum(self.costs[:2].sum(axis=1, keepdims=True), 1e-300)
        return np.asarray(np.floor(self.costs[:2] / totals * GRAIN))

    @cached_property
    def tensors(self) -> tuple[tuple[int, int, int], ...]:
        return tuple(
            (each.producer, sum(1 << reader for reader in set(each.readers)), each.exchanged_bytes)
            for each in self.profile.graph.tensors
        )


@dataclass(frozen=True, slots=True)
class Block:
    """The chosen layers between two ideals that all others are comparable with, `before` and
    `after` (masks, layers placed by rule included)."""

    model: Model
    chosen: tuple[int, ...]
    before: int
    after: int

    def states(self, most: int) -> States:
        """All ideals between the two, in about `most` columns: each by itself where there are
        no more; else branch after branch, those with like costs together (and both ends)."""
        branches = [self._branch(part, most) for part in parts(self.chosen, self._needs)]
        if prod(map(len, branches)) <= most:
            found = self._closed(side_by_side(branches), exact=True)
            held = found.inside.sum(axis=0)
            return found.keep(np.flatnonzero((held > 0) & (held < len(found.layers))))
        found = merged(branches[0], SIDE)
        for branch in branches[1:]:
            side = merged(branch, SIDE)
            found = side_by_side([merged(found, max(1, most // len(side))), side])
        return replace(self._closed(merged(found, most), exact=False), exact=False)

    @property
    def _needs(self) -> dict[int, int]:
        return self.model.elements.needs

    def _branch(self, part: list[int], most: int) -> States:
        most = min(most, max(SIDE, MOST_BITS // len(part)))
        masks, whole = ideals_of(part, self._needs, most)
        words = (len(part) + 7) // 8
        packed = np.frombuffer(b"".join(m.to_bytes(words, "little") for m in masks), np.uint8)
        rows = np.unpackbits(packed.reshape(-1, words), axis=1, bitorder="little")
        inside = np.ascontiguousarray(rows[:, : len(part)].T.astype(np.bool_))
        held = inside.astype(np.float64)
        sums = self.model.costs[:, part] @ held
        alive = self._alive_for_sure(tuple(part), inside)
        key = self.model.grains[:, part] @ held
        return States(self.before, tuple(part), inside, key, sums, sums, alive, whole)

    def _alive_for_sure(self, layers: tuple[int, ...], inside: Bools) -> Floats:
        """Bytes alive whatever the other branches hold. What comes in front of the block is
        parted among the branches that read it; readers placed by rule are passed over."""
        place = {layer: number for number, layer in enumerate(layers)}
        alive = np.zeros(inside.shape[1])
        for producer, readers, size in self.model.tensors:
            here = [place[reader] for reader in bits(readers & self._within) if reader in place]
            if producer in place and readers & ~self.after:
                alive += inside[place[producer]] * size
            elif producer in place and here:
                alive += (inside[place[producer]] & ~inside[here].all(axis=0)) * size
            elif self.before >> producer & 1 and here and not readers & ~self.after:
                several = [n for n in bits(readers & self._within) if n in self._needs]
                alive += ~inside[here].all(axis=0) * (size * len(here) / len(several))
        return alive

    @property
    def _within(self) -> int:
        return self.after & ~self.before

    def _closed(self, states: States, exact: bool) -> States:
        """With the layers that are placed by rule, and what passes by the block; the bytes of
        every column by itself where it is `exact`."""
        layers = tuple(bits(self._within))
        place = {layer: number for number, layer in enumerate(layers)}
        inside = np.zeros((len(layers), len(states)), dtype=np.bool_)
        inside[[place[layer] for layer in states.layers]] = states.inside
        elements = self.model.elements
        for layer in sorted(elements.late.intersection(layers), reverse=True):
            readers = [place[n] for n in bits(elements.readers[layer]) if n in place]
            inside[place[layer]] = inside[readers].any(axis=0)
        for layer in sorted(elements.early.intersection(layers)):
            inputs = [place[n] for n in elements.inputs[layer] if n in place]
            inside[place[layer]] = inside[inputs].all(axis=0)
        placed = [place[n] for n in layers if n not in elements.needs]
        outputs = self.model.costs[2, [layers[n] for n in placed]]
        more = outputs @ inside[placed].astype(np.float64)
        low, high = states.low.copy(), states.high.copy()
        low[2] += more if exact else 0.0
        high[2] += more if exact else outputs.sum()
        alive = self._alive(place, inside) if exact else states.exchanged_bytes
        return replace(
            states,
            layers=layers,
            inside=inside,
            low=low,
            high=high,
            exchanged_bytes=alive + self._passing(),
        )

    def _alive(self, place: dict[int, int], inside: Bools) -> Floats:
        """Bytes of the tensors that are made or read in the block."""
        alive = np.zeros(inside.shape[1])
        for producer, readers, size in self.model.tensors:
            here = [place[reader] for reader in bits(readers & self._within)]
            if producer in place:
                made = inside[place[producer]]
                beyond = readers & ~self.after
                alive += (made if beyond else made & ~inside[here].all(axis=0)) * float(size)
            elif here and not readers & ~self.after:
                alive += ~inside[here].all(axis=0) * float(size)
        return alive

    def _passing(self) -> float:
        """Bytes of the tensors that pass by the whole block."""
        return float(
            sum(
                size
                for producer, readers, size in self.model.tensors
                if self.before >> producer & 1 and readers & ~self.after
            )
        )


def side_by_side(branches: Sequence[States]) -> States:
    """Every ideal of each branch with every one of the others."""
    found = branches[0]
    for branch in branches[1:]:
        here = np.repeat(np.arange(len(found)), len(branch))
        there = np.tile(np.arange(len(branch)), len(found))
        a, b = found.keep(here), branch.keep(there)
        found = replace(
            a,
            layers=a.layers + b.layers,
            inside=np.concatenate([a.inside, b.inside]),
            key=a.key + b.key,
            low=a.low + b.low,
            high=a.high + b.high,
            exchanged_bytes=a.exchanged_bytes + b.exchanged_bytes,
            whole=a.whole and b.whole,
        )
    return found
