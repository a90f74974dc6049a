"""What looks wrong in a PipeDream profile: sentences for its reader; nothing is changed."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Protocol

from backend.units import bytes_text

EMPTY_BACKWARD = 0.05
"""A layer with parameters takes longer backward than forward; under this ratio it is a fault."""
OUTLIER = 3.0
"""Layers of one text and size do the same work; this many times their median is a fault."""


class Measured(Protocol):
    """A node of a profile as it stands in the file; seconds and bytes."""

    @property
    def id(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def is_input(self) -> bool: ...
    @property
    def forward(self) -> float: ...
    @property
    def backward(self) -> float: ...
    @property
    def output_bytes(self) -> int: ...
    @property
    def parameter_bytes(self) -> int: ...


def find_faults(nodes: Sequence[Measured], edges: Sequence[tuple[int, int]]) -> Iterator[str]:
    """A sentence per suspicious node, with its numbers. The kinds are those seen in the
    profiles that PipeDream's authors published; the thresholds are ours."""
    yield from _loading(nodes)
    yield from _concatenations(nodes, edges)
    yield from _empty_backwards(nodes)
    yield from _outliers(nodes)


def _loading(nodes: Sequence[Measured]) -> Iterator[str]:
    for node in nodes:
        if seconds := node.is_input and node.forward + node.backward:
            yield (
                f"{node.id}: {seconds * 1e3:.1f} ms of data loading, which the file counts as "
                f"compute of {node.text}, are left out"
            )


def _concatenations(nodes: Sequence[Measured], edges: Sequence[tuple[int, int]]) -> Iterator[str]:
    inputs = defaultdict(list)
    for producer, consumer in edges:
        inputs[consumer].append(nodes[producer].output_bytes)
    for index, node in enumerate(nodes):
        total = sum(inputs[index])
        if node.text.startswith("Concat") and node.output_bytes < total:
            yield (
                f"{node.id}: {node.text} has an output of {bytes_text(node.output_bytes)}, "
                f"its inputs together {bytes_text(total)}; a cut behind it looks too cheap"
            )


def _empty_backwards(nodes: Sequence[Measured]) -> Iterator[str]:
    threshold = sum(node.forward + node.backward for node in nodes if not node.is_input) / 1e3
    for node in nodes:
        if (
            not node.is_input
            and node.parameter_bytes
            and node.forward > threshold
            and node.backward < EMPTY_BACKWARD * node.forward
        ):
            yield (
                f"{node.id}: backward takes {node.backward * 1e3:.3f} ms beside "
                f"{node.forward * 1e3:.3f} ms forward; it was probably not measured"
            )


def _outliers(nodes: Sequence[Measured]) -> Iterator[str]:
    threshold = sum(node.forward + node.backward for node in nodes if not node.is_input) / 1e2
    twins = defaultdict(list)
    for node in nodes:
        twins[node.text, node.output_bytes, node.parameter_bytes].append(node)
    for same in twins.values():
        usual = median(node.backward for node in same)
        for node in same:
            if len(same) > 2 and node.backward > max(OUTLIER * usual, threshold):
                yield (
                    f"{node.id}: backward takes {node.backward * 1e3:.1f} ms where its "
                    f"{len(same) - 1} equal layers take {usual * 1e3:.1f} ms"
                )
