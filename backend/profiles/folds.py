"""Equal blocks of layers, one behind the other: what a page may show once, with their number."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph

LONGEST = 64
"""Layers of a block that has no path of its own: longer ones are not looked for."""
_NUMBER = re.compile("[0-9]+")
_Key = tuple[str, int, int, int, int]
"""What equal layers have in common: kind, and bytes of parameters, output, frozen, buffers."""


@dataclass(frozen=True, slots=True)
class Fold:
    """Blocks of `size` layers each, from layer `first` on, by their `names`; two or more. `name`
    says the first and the last: "model.layers.0 to 79".

    Blocks are equal: at each place the same kind and the same bytes, under names that differ in
    one number only. Their seconds may differ.
    """

    first: int
    size: int
    names: tuple[str, ...]
    name: str

    @property
    def count(self) -> int:
        """Number of blocks."""
        return len(self.names)

    @property
    def stop(self) -> int:
        """The layer behind the last one."""
        return self.first + self.size * self.count

    @property
    def blocks(self) -> Iterator[range]:
        """The layers of each block."""
        firsts = range(self.first, self.stop, self.size)
        return (range(first, first + self.size) for first in firsts)


Item = Fold | int
"""A fold, or a layer by its index."""


def folded(graph: ModelGraph) -> tuple[Item, ...]:
    """Every layer once and in order, equal blocks in folds.

    Two kinds of blocks are known by the names: layers under one numbered path
    ("model.layers.7.mlp", "model.layers.7.norm"), and a stretch of layers that are numbered one by
    one ("node12", "node13") in which a sequence returns. Of folds that overlap, the one with the
    most layers is taken.
    """
    return tuple(_folded(_Layers(graph), 0, len(graph.layers)))


class _Layers:
    """Of each layer: what it has in common with equals, and its name around each number."""

    def __init__(self, graph: ModelGraph) -> None:
        self.keys = [_key(layer) for layer in graph.layers]
        self.names = [layer.name for layer in graph.layers]
        self.numbered = [list(_numbered(name)) for name in self.names]
        self.cut_bytes = graph.cut_bytes


def _key(layer: Layer) -> _Key:
    return (
        layer.kind,
        layer.parameter_bytes,
        layer.output_bytes,
        layer.frozen_bytes,
        layer.buffer_bytes,
    )


def _numbered(name: str) -> Iterator[tuple[str, str, str]]:
    """What is before, in and behind each number of a name."""
    for found in _NUMBER.finditer(name):
        yield name[: found.start()], found.group(), name[found.end() :]


def _folded(layers: _Layers, first: int, stop: int) -> Iterator[Item]:
    found = [*_under_paths(layers, first, stop), *_in_rows(layers, first, stop)]
    if not found:
        yield from range(first, stop)
        return
    best = min(found, key=lambda fold: _rank(layers, fold.first, fold.size, fold.count))
    yield from _folded(layers, first, best.first)
    yield best
    yield from _folded(layers, best.stop, stop)


def _rank(layers: _Layers, first: int, size: int, count: int) -> tuple[int, int, int, int]:
    """The most layers first, then small blocks, then those between which little is sent."""
    return -size * count, size, layers.cut_bytes[first + size - 1], first


def _under_paths(layers: _Layers, first: int, stop: int) -> Iterator[Fold]:
    """Neighbouring modules of one numbered list, with the same layers under the same names."""
    lists: dict[str, list[tuple[str, int]]] = {}
    for index in range(first, stop):
        for before, number, _ in layers.numbered[index]:
            lists.setdefault(before, []).append((number, index))
    for before, members in lists.items():
        if len(members) < 2:
            continue
        blocks = list(_modules(members))
        for _, run in groupby(_alike(layers, before, blocks), key=lambda pair: pair[0]):
            equal = [block for _, block in run]
            if len(equal) > 1:
                start, size = equal[0][1].start, len(equal[0][1])
                names = tuple(before + number for number, _ in equal)
                yield Fold(start, size, names, _span(names[0], names[-1]))


def _modules(members: Sequence[tuple[str, int]]) -> Iterator[tuple[str, range]]:
    """Neighbouring layers with the same number."""
    start, last = members[0], members[0]
    for member in (*members[1:], ("", -1)):
        if member != (start[0], last[1] + 1):
            yield start[0], range(start[1], last[1] + 1)
            start = member
        last = member


def _alike(
    layers: _Layers, before: str, blocks: Sequence[tuple[str, range]]
) -> Iterator[tuple[int, tuple[str, range]]]:
    """Each block with a number that neighbours share which touch each other and are equal."""
    group, previous, stop = 0, None, -1
    for number, block in blocks:
        rest = len(before) + len(number)
        now = [(layers.names[i][rest:], layers.keys[i]) for i in block]
        group += now != previous or block.start != stop
        previous, stop = now, block.stop
        yield group, (number, block)


def _in_rows(layers: _Layers, first: int, stop: int) -> Iterator[Fold]:
    """What returns in a stretch of layers that differ in the number at the end of their names."""
    ends = [(n[-1][0] if (n := layers.numbered[i]) and not n[-1][2] else None) for i in range(stop)]
    for before, stretch in groupby(range(first, stop), key=lambda i: ends[i]):
        members = list(stretch)
        if before is not None:
            found = _returning(layers.keys, members[0], members[-1] + 1)
            if best := min(found, key=lambda each: _rank(layers, *each), default=None):
                yield _row(layers.names, *best)


def _returning(keys: Sequence[_Key], first: int, stop: int) -> Iterator[tuple[int, int, int]]:
    """First layer, size and number of the blocks that return from there on."""
    for size in range(1, min(LONGEST, (stop - first) // 2) + 1):
        equal = 0
        for index in range(stop - size - 1, first - 1, -1):
            equal = equal + 1 if keys[index] == keys[index + size] else 0
            if equal >= size:
                yield index, size, 1 + equal // size


def _row(names: Sequence[str], first: int, size: int, count: int) -> Fold:
    stop = first + size * count
    blocks = (names[start : start + size] for start in range(first, stop, size))
    spans = tuple(_span(block[0], block[-1]) for block in blocks)
    return Fold(first, size, spans, _span(names[first], names[stop - 1]))


def _span(one: str, other: str) -> str:
    """The first and the last name: "model.layers.0 to 79"."""
    if one == other:
        return one
    before = next((before for before, _, rest in _numbered(one) if not rest), "")
    return f"{one} to {other.removeprefix(before)}"
