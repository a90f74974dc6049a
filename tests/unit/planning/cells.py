"""Networks of cells each of which reads the two before it, as found by architecture search.

In a graph of this kind no cut but those at its ends is comparable with all others: while the last
layers of one cell are open, the next cell has begun on what the one before both has made.
"""

import random

from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile

BLOCKS = 5
STEPS = 5
"""Layers in a row on the way from one of a block's inputs to its sum."""


def network_of_cells(num_layers: int, seed: int = 0) -> Profile:
    """About `num_layers` layers: cells of two squeezes, `BLOCKS` sums of two ways and a
    concatenation (after Zoph et al., CVPR 2018), a third of the way in and at two thirds half as
    large and twice as wide; seconds and bytes are drawn."""
    chance = random.Random(seed)
    layers: list[Layer] = []
    edges: list[tuple[int, int]] = []

    def add(kind: str, size: float, weights: float, *inputs: int) -> int:
        seconds = (size + 30 * weights) * chance.uniform(0.5, 1.5) * 1e-10 if weights else 0.0
        name = f"{kind}{len(layers)}"
        layers.append(Layer(name, kind, seconds, 2 * seconds, int(size), int(weights)))
        edges.extend((before, len(layers) - 1) for before in dict.fromkeys(inputs))
        return len(layers) - 1

    each = 3 + BLOCKS * (2 * STEPS + 1)
    count = max(3, round((num_layers - 3) / each))
    size, weights = 24e6, 2e4
    before = last = add("Conv2d", size, weights)
    for number in range(count):
        if number in (count // 3, 2 * count // 3):
            size, weights = size / 2, weights * 4
        states = [add("Conv2d", size, weights, before), add("Conv2d", size, weights, last)]
        sums = []
        for _ in range(BLOCKS):
            ways = []
            for _ in range(2):
                way = chance.choice(states)
                for _ in range(STEPS):
                    way = add("Conv2d", size, weights * chance.uniform(0.5, 1.5), way)
                ways.append(way)
            sums.append(add("Add", size, 0, *ways))
            states.append(sums[-1])
        read = {a for a, _ in edges}
        loose = [n for n in (*states[:2], *sums) if n not in read]
        before, last = last, add("Concat", size * len(loose), 0, *loose)
    pooled = add("AvgPool2d", size / 50, 0, last)
    add("Linear", 5e5, 8e6, pooled)
    return Profile(f"cells{num_layers}", ModelGraph(tuple(layers), tuple(sorted(edges))), 32)
