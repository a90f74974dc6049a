"""The layers that a cut can choose between, without those whose best place is known."""

from collections.abc import Iterator, Sequence

from backend.profiles.profile import ModelGraph


class PartialOrder:
    """The layers to choose from, as bits, each with those that must come before it.

    Layers that cost no compute and have no weights are placed by rule and not chosen, which no
    plan's bottleneck loses by (unless `free` is false):

    - late: a source (or what is made of sources alone, and no smaller than those of them that
      others read too) comes with its first reader;
    - early: a layer whose output is no larger than the inputs that only it reads comes with them.
    """

    def __init__(self, graph: ModelGraph, free: bool = True) -> None:
        count = len(graph.layers)
        self.count = count
        self.readers = [0] * count
        self.inputs: list[list[int]] = [[] for _ in range(count)]
        for producer, consumer in graph.edges:
            self.readers[producer] |= 1 << consumer
            self.inputs[consumer].append(producer)
        self._weigh(graph)
        self.late: set[int] = set()
        for layer in range(count if free else 0):
            if self._is_late(graph, layer):
                self.late.add(layer)
        self.early = {n for n in range(count) if free and self._is_early(graph, n)}
        self.chosen = [n for n in range(count) if n not in self.late | self.early]
        self.needs = self._needs()

    def _weigh(self, graph: ModelGraph) -> None:
        """Per layer: bytes that it makes for others, that it alone reads, that it reads too, with
        the gradients that come back."""
        self.made, self.own, self.shared = ([0] * self.count for _ in range(3))
        for tensor in graph.tensors:
            self.made[tensor.producer] += tensor.exchanged_bytes
            for reader in tensor.readers:
                held = self.own if set(tensor.readers) == {reader} else self.shared
                held[reader] += tensor.exchanged_bytes

    def _is_late(self, graph: ModelGraph, layer: int) -> bool:
        if not _is_free(graph, layer) or not self.readers[layer]:
            return False
        of_sources = self.late.issuperset(self.inputs[layer])
        return of_sources and self.made[layer] >= self.shared[layer]

    def _is_early(self, graph: ModelGraph, layer: int) -> bool:
        inputs = self.inputs[layer]
        if not _is_free(graph, layer) or not inputs or self.late.intersection(inputs):
            return False
        return self.made[layer] <= self.own[layer]

    def _needs(self) -> dict[int, int]:
        """The chosen layers that each chosen one waits for, through those placed by rule."""
        through: list[int] = []
        needs: dict[int, int] = {}
        placed = self.early | self.late
        for layer in range(self.count):
            mask = 0
            for before in self.inputs[layer]:
                mask |= through[before]
            if layer not in placed:
                needs[layer] = mask
            through.append(mask if layer in placed else 1 << layer)
        return needs

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

    def blocks(self) -> Iterator[list[int]]:
        """The chosen layers, parted wherever one ideal is comparable with all others: that
        holds before layer k if all layers from k on wait for all layers before it."""
        after: list[int] = []
        common = -1
        above = self._above()
        for layer in reversed(self.chosen):
            common &= above[layer]
            after.append(common)
        block: list[int] = []
        done = 0
        for layer, shared in zip(self.chosen, reversed(after), strict=True):
            if block and shared & done == done:
                yield block
                block = []
            block.append(layer)
            done |= 1 << layer
        if block:
            yield block

    def _above(self) -> dict[int, int]:
        """All chosen layers that each one waits for, near and far."""
        found: dict[int, int] = {}
        for layer, near in self.needs.items():
            mask = near
            for before in bits(near):
                mask |= found[before]
            found[layer] = mask
        return found


def ideals_of(layers: Sequence[int], needs: dict[int, int], most: int) -> tuple[list[int], bool]:
    """The ideals of the partial order of `layers` alone, as masks over their places, and whether
    all are there: where they are more than `most`, those of the layers' own order alone."""
    place = {layer: number for number, layer in enumerate(layers)}
    inside = sum(1 << layer for layer in layers)
    waits = [sum(1 << place[n] for n in bits(needs[layer] & inside)) for layer in layers]
    after: list[list[int]] = [[] for _ in layers]
    for number, mask in enumerate(waits):
        for other in bits(mask):
            after[other].append(number)
    row: dict[int, frozenset[int]] = {0: frozenset(n for n, w in enumerate(waits) if not w)}
    found = [0]
    while row:
        following: dict[int, frozenset[int]] = {}
        for mask, ready in row.items():
            for element in ready:
                grown = mask | 1 << element
                if grown not in following:
                    opened = (n for n in after[element] if not waits[n] & ~grown)
                    following[grown] = (ready - {element}).union(opened)
        if len(found) + len(following) > most:
            return [(1 << number) - 1 for number in range(len(layers) + 1)], False
        found += following
        row = following
    return found, True


def parts(layers: Sequence[int], needs: dict[int, int]) -> list[list[int]]:
    """`layers` parted into those that have nothing to do with each other: branches."""
    home: dict[int, list[int]] = {}
    inside = sum(1 << layer for layer in layers)
    for layer in layers:
        mine = [layer]
        for before in bits(needs[layer] & inside):
            other = home[before]
            if other is not mine:
                mine = sorted(other + mine)
                home.update(dict.fromkeys(mine, mine))
        home[layer] = mine
        home.update(dict.fromkeys(mine, mine))
    return list({id(part): part for part in home.values()}.values())


def bits(mask: int) -> Iterator[int]:
    """The places of the ones in `mask`, the lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _is_free(graph: ModelGraph, layer: int) -> bool:
    found = graph.layers[layer]
    weights = found.parameter_bytes or found.constant_bytes
    return not (found.compute_and_update or weights or found.work_bytes)
