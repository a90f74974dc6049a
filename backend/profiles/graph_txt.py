"""PipeDream's graph.txt: read into a profile, and written from one."""

import heapq
import re
from collections import defaultdict
from dataclasses import dataclass

from backend.errors import InvalidInput
from backend.profiles.faults import find_faults
from backend.profiles.layer import Layer
from backend.profiles.module_text import flops, text_of
from backend.profiles.profile import ModelGraph, Profile

ADVICE = (
    "A node is written: nodeN -- Conv2d(3, 64) -- forward_compute_time=MS, "
    "backward_compute_time=MS, activation_size=BYTES, parameter_size=BYTES; "
    "an edge: a tab, then nodeA -- nodeB."
)
_FIELD = re.compile(r"(\w+)=(\[[^\]]*\]|[^,\s]+)")
_NUMBERS = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True)
class GraphNode:
    """One node line: seconds, bytes, and the module's text in full."""

    id: str
    text: str
    forward: float
    backward: float
    output_bytes: int
    parameter_bytes: int

    @property
    def is_input(self) -> bool:
        return self.text.startswith("Input")

    @property
    def layer(self) -> Layer:
        """The node as a layer; data loading stands as an Input's compute and is left out."""
        kind = self.text.split("(")[0].strip() or "module"
        forward, backward = (0.0, 0.0) if self.is_input else (self.forward, self.backward)
        count = flops(self.text, self.output_bytes)
        sizes = self.output_bytes, self.parameter_bytes
        return Layer(self.id, kind, forward, backward, *sizes, flops=count)


def read_graph(text: str, name: str = "graph", microbatch: int | None = None) -> Profile:
    """The profile in PipeDream's graph.txt: layers in topological order, seconds and bytes.

    The file does not say its batch size: without `microbatch` it counts as 1, so that samples
    are minibatches, and a note says so. Known faults of such data become notes (`find_faults`).
    Raises `InvalidInput` with the line that cannot be read, or on a cycle.
    """
    nodes, edges = _parse(text)
    order = _topological(nodes, edges)
    place = {node: index for index, node in enumerate(order)}
    arrows = tuple(sorted((place[a], place[b]) for a, b in edges))
    ordered = [nodes[node] for node in order]
    notes = [*find_faults(ordered, arrows)]
    if microbatch is None:
        notes.append("graph.txt does not state the batch size; one sample stands for a minibatch")
    graph = ModelGraph(tuple(node.layer for node in ordered), arrows)
    return Profile(name, graph, microbatch or 1, device="unknown", notes=tuple(notes))


def write_graph(profile: Profile) -> str:
    """`profile` as graph.txt. Layers named nodeN keep their names, others are numbered from
    node1. A layer's operations stand behind its kind; update times, notes and microbatch have
    no place in the format and are left out."""
    named = all(re.fullmatch(r"node\d+", layer.name) for layer in profile.layers)
    ids = [
        layer.name if named else f"node{number}"
        for number, layer in enumerate(profile.layers, start=1)
    ]
    lines = [
        f"{node} -- {text_of(layer.kind, layer.flops)} -- "
        f"forward_compute_time={layer.forward * 1e3:.12g}, "
        f"backward_compute_time={layer.backward * 1e3:.12g}, "
        f"activation_size={layer.output_bytes}, parameter_size={layer.parameter_bytes}"
        for node, layer in zip(ids, profile.layers, strict=True)
    ]
    lines += [f"\t{ids[producer]} -- {ids[consumer]}" for producer, consumer in profile.graph.edges]
    return "\n".join(lines) + "\n"


def _parse(text: str) -> tuple[dict[str, GraphNode], set[tuple[str, str]]]:
    nodes: dict[str, GraphNode] = {}
    edges: dict[tuple[str, str], int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        parts = [part.strip() for part in line.split(" -- ")]
        if line.startswith("\t") and len(parts) == 2:
            edges[parts[0], parts[1]] = number
        elif line.strip():
            node = _node(number, parts)
            if node.id in nodes:
                raise InvalidInput(f"line {number}: {node.id} appears twice", ADVICE)
            nodes[node.id] = node
    for edge, number in edges.items():
        for end in edge:
            if end not in nodes:
                raise InvalidInput(f"line {number}: the edge's {end!r:.60} has no node", ADVICE)
    if not nodes:
        raise InvalidInput("the graph has no nodes", ADVICE)
    return nodes, set(edges)


def _node(number: int, parts: list[str]) -> GraphNode:
    fields = dict(_FIELD.findall(parts[2])) if len(parts) in (3, 4) else {}
    try:
        forward, backward = (
            float(fields[f"{way}_compute_time"]) / 1e3 for way in ("forward", "backward")
        )
        sizes = [float(size) for size in fields["activation_size"].strip("[]").split(";")]
        parameters = float(fields["parameter_size"])
        values = (forward, backward, *sizes, parameters)
        if not all(0 <= value < float("inf") for value in (*values, sum(sizes))):
            raise ValueError(f"a value below 0 or not finite among {values}")
    except (KeyError, ValueError) as fault:
        raise InvalidInput(f"line {number} is not a node: {fault}", ADVICE) from None
    return GraphNode(parts[0], parts[1], forward, backward, round(sum(sizes)), round(parameters))


def _topological(nodes: dict[str, GraphNode], edges: set[tuple[str, str]]) -> list[str]:
    """Node ids, producers first, ties by the number in the id (the order of the trace)."""
    waiting = dict.fromkeys(nodes, 0)
    consumers = defaultdict(list)
    for producer, consumer in edges:
        waiting[consumer] += 1
        consumers[producer].append(consumer)
    ready = [(_rank(node), node) for node, count in waiting.items() if not count]
    heapq.heapify(ready)
    order: list[str] = []
    while ready:
        order.append(heapq.heappop(ready)[1])
        for consumer in consumers[order[-1]]:
            waiting[consumer] -= 1
            if not waiting[consumer]:
                heapq.heappush(ready, (_rank(consumer), consumer))
    if len(order) < len(nodes):
        stuck = sorted(set(nodes) - set(order), key=_rank)
        raise InvalidInput(f"the graph has a cycle through {stuck[0]}", ADVICE)
    return order


def _rank(node: str) -> tuple[tuple[int, str], ...]:
    """The numbers in the id, however long."""
    numbers = [digits.lstrip("0") for digits in _NUMBERS.findall(node)]
    return tuple((len(digits), digits) for digits in numbers)
