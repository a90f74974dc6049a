"""All cuts of a graph that has too many for a search: those that a time limit leaves, those that
stand for the others, and cells of like ones that no plan escapes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from operator import or_

import numpy as np
from numpy.typing import NDArray

from backend.planning.cost import DIRECTIONS, Floats
from backend.planning.pipedream.decomposition import (
    GRAIN,
    SIDE,
    Block,
    Bools,
    Model,
    States,
    merged,
)
from backend.planning.pipedream.ideals import Ideals, is_chain, own_order, smallest_first
from backend.planning.pipedream.partial_order import PartialOrder, bits
from backend.profiles.profile import Profile

Ints = NDArray[np.int64]
MOST = 2000
"""Cuts that a search looks at one by one."""
MOST_COLUMNS = 400_000
"""Ideals that are kept in all, some 100 bytes each; a graph with more has like ones merged."""
PER_BLOCK = 240_000
"""Ideals of one block, likewise: Inception-v3 has 221,564 in all."""
FINEST = 2**16
"""Parts into which compute and weights are cut at most, to tell cells apart."""


@dataclass(frozen=True)
class Cells:
    """Ideals with like costs as one: what every plan is, seen through them.

    A stage between two cells counts the least that one between two of their ideals can cost,
    and whether they are nested is not asked. Two cuts of a plan in one cell count as one, as the
    stage between them may as well stand idle. So a time in which cells admit no plan is a lower
    bound. `compute`, `parameters` and `outputs` are the least of each cell, `most` the most.
    """

    profile: Profile
    compute: Floats
    parameters: Floats
    outputs: Floats
    exchanged_bytes: Floats
    most: Floats
    complete: bool = False

    def __len__(self) -> int:
        return len(self.compute)

    @cached_property
    def one_way(self) -> Bools:
        """Whether a cut of each may be so, where the model has any that are."""
        return np.full(len(self), not self.profile.graph.is_two_way)

    @cached_property
    def cut_bytes(self) -> Floats:
        """The least that is alive across the cut of each; where some may be one way, none are
        counted."""
        return np.where(self.one_way, 0.0, self.exchanged_bytes / DIRECTIONS)

    @property
    def compute_most(self) -> Floats:
        return np.asarray(self.most[0])

    def nested_in(self, firsts: Ints, stop: int) -> Bools:
        """Nobody asks."""
        return np.ones(len(firsts), dtype=np.bool_)

    def weights(self, firsts: Ints, stop: int) -> Floats:
        return np.asarray(np.maximum(self.parameters[stop] - self.most[1][firsts], 0.0))

    def kept(self, firsts: Ints, stop: int) -> Floats:
        return np.asarray(np.maximum(self.outputs[stop] - self.most[2][firsts], 0.0))

    def constants(self, firsts: Ints, stop: int) -> Floats:
        """None are counted, as a lower bound may."""
        return np.zeros(len(firsts))

    at_work = constants


@dataclass(frozen=True)
class Candidates:
    """The ideals of `profile` in groups, each of which holds the one before it: one alone that
    all others are comparable with, then those of the block up to the next one."""

    profile: Profile
    groups: tuple[States, ...]

    @staticmethod
    def of(profile: Profile, free: bool = True, most: int = MOST_COLUMNS) -> "Candidates":
        """Every ideal, or columns that stand for several: about `most` in all. With `free`
        some layers are placed by rule (`PartialOrder`)."""
        model = Model(profile, PartialOrder(profile.graph, free))
        parts = list(model.elements.blocks())
        masks = [model.elements.close(0)]
        masks += (model.elements.close(chosen) for chosen in accumulate(map(_mask, parts), or_))
        edges = [_alone(model, before, after) for before, after in pairwise((0, *masks))]
        share = max(SIDE, most // max(1, sum(len(part) > 1 for part in parts)))
        groups: list[States] = []
        found = 0
        base = np.zeros((3, 1))
        for edge, part, span in zip(edges, parts, pairwise(masks), strict=False):
            groups.append(edge.on(base))
            base = base + edge.low
            if len(part) > 1:
                states = Block(model, tuple(part), *span).states(min(most, PER_BLOCK))
                found += len(states)
                groups.append((states if found <= most else merged(states, share)).on(base))
        return Candidates(profile, (*groups, edges[-1].on(base)))

    @property
    def is_whole(self) -> bool:
        """Whether every ideal is here, by itself or among those that a column stands for."""
        return all(states.whole for states in self.groups)

    @property
    def is_exact(self) -> bool:
        """Whether each is here by itself."""
        return self.is_whole and all(states.exact for states in self.groups)

    @cached_property
    def group(self) -> Ints:
        """The group of each column; `low`, `high`, `key` and `exchanged_bytes` as in `States`."""
        return np.repeat(np.arange(len(self.groups)), [len(states) for states in self.groups])

    @cached_property
    def low(self) -> Floats:
        return np.concatenate([states.low for states in self.groups], axis=1)

    @cached_property
    def high(self) -> Floats:
        return np.concatenate([states.high for states in self.groups], axis=1)

    @cached_property
    def exchanged_bytes(self) -> Floats:
        return np.concatenate([states.exchanged_bytes for states in self.groups])

    def __len__(self) -> int:
        return len(self.group)

    def with_cuts_up_to(self, exchanged_bytes: float) -> Ints:
        """The columns over whose cuts no more bytes are alive, and both ends."""
        light = self.exchanged_bytes <= exchanged_bytes
        light[[0, -1]] = True
        return np.flatnonzero(light)

    def ideals(self, columns: Ints, complete: bool = False) -> Ideals:
        """The chosen ones by themselves; of those that a column stands for, the cheapest."""
        count = len(self.profile.layers)
        starts = np.searchsorted(self.group, np.arange(len(self.groups)))
        rows = []
        for number in np.unique(self.group[columns]).tolist():
            states, own = self.groups[number], columns[self.group[columns] == number]
            members = np.zeros((len(own), count), dtype=np.bool_)
            members[:, list(bits(states.before))] = True
            members[:, list(states.layers)] = states.inside[:, own - starts[number]].T
            rows.append(members)
        rows += [] if complete else [own_order(count)]
        return Ideals(self.profile, smallest_first(np.concatenate(rows)), complete)

    def thinned(self, columns: Ints, most: int) -> Ideals:
        """About `most` of `columns`, of those with like costs the one with the fewest bytes, and
        the prefixes of the profile's own order."""
        cell = self._cells(columns, most)
        order = np.lexsort((self.exchanged_bytes[columns], cell))
        return self.ideals(np.sort(columns[order[_starts(cell[order])]]))

    def cells(self, columns: Ints, most: int) -> Cells:
        """`columns` in at most about `most` cells."""
        cell = self._cells(columns, most)
        order = np.argsort(cell, kind="stable")
        starts, chosen = _starts(cell[order]), columns[order]
        compute, parameters, outputs = np.minimum.reduceat(self.low[:, chosen], starts, axis=1)
        return Cells(
            self.profile,
            compute,
            parameters,
            outputs,
            np.minimum.reduceat(self.exchanged_bytes[chosen], starts),
            np.maximum.reduceat(self.high[:, chosen], starts, axis=1),
        )

    def _cells(self, columns: Ints, most: int) -> Ints:
        """The cell of each column, ascending with the group, then the key."""
        key = np.concatenate([states.key for states in self.groups], axis=1)[:, columns]
        group = self.group[columns]
        fine, found = 1, group
        while fine < FINEST:
            place = np.minimum(np.floor(key / GRAIN * fine), fine - 1).astype(np.int64)
            finer = (group * FINEST + place[0]) * FINEST + place[1]
            if len(np.unique(finer)) > most:
                break
            found, fine = finer, fine * 2
        return np.asarray(found)


def all_ideals(profile: Profile, most: int = MOST) -> Ideals | None:
    """All ideals of `profile`'s graph, in which an optimal plan is, where they are no more
    than `most`; else None: ask a `Candidates`.

    If all are more, those remain that are left when layers without compute and weights take the
    place that is best for every plan (`PartialOrder`).
    """
    if is_chain(profile.graph):
        return Ideals(profile, own_order(len(profile.layers)), complete=True)
    for free in (False, True):
        candidates = Candidates.of(profile, free, most)
        if candidates.is_exact and len(candidates) <= most:
            return candidates.ideals(np.arange(len(candidates)), complete=True)
    return None


def _starts(cell: Ints) -> Ints:
    return np.flatnonzero(np.diff(cell, prepend=-1))


def _mask(layers: Sequence[int]) -> int:
    return sum(1 << layer for layer in layers)


def _alone(model: Model, before: int, after: int) -> States:
    """The ideal `after`; its costs are those of what `before` does not hold."""
    sums = model.costs[:, list(bits(after & ~before))].sum(axis=1, keepdims=True)
    alive = sum(
        size for made, readers, size in model.tensors if after >> made & 1 and readers & ~after
    )
    nothing = np.zeros((0, 1), dtype=np.bool_)
    return States(after, (), nothing, np.zeros((2, 1)), sums, sums, np.array([float(alive)]))
