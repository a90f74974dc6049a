"""The published profiles, and the plans that PipeDream's own planner gives for them."""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from backend.cluster.cluster import Cluster, Level
from backend.planning.pipedream.bottleneck import bottleneck
from backend.planning.plan import Partition, Stage
from backend.profiles.graph_txt import read_graph
from backend.profiles.profile import ModelGraph, Profile

FOLDER = Path(__file__).resolve().parents[3] / "../shared/profiles"
MODELS = ["alexnet", "vgg16", "resnet50", "densenet121", "gnmt_large", "inception_v3"]
BATCHES = {"alexnet": 256, "vgg16": 128, "resnet50": 128, "densenet121": 64}


@cache
def load(model: str) -> Profile:
    text = (FOLDER / model / "graph.txt").read_text()
    return read_graph(text, model, BATCHES.get(model))


@dataclass(frozen=True)
class Answer:
    """One row of published_planner.csv."""

    model: str
    title: str
    options: str
    cpu_seconds: float
    replicas: tuple[int, ...]
    stage_ends: tuple[tuple[str, ...], ...]
    stage_compute_ms: tuple[float, ...]

    @property
    def cluster(self) -> Cluster:
        counts = re.search(r"-n ([\d ]+)", self.options).group(1).split()
        speeds = re.search(r"-b ([\de. ]+)", self.options).group(1).split()
        return Cluster(tuple(Level(int(n), float(b)) for n, b in zip(counts, speeds, strict=True)))

    @property
    def wastes(self) -> bool:
        """Whether a stage without compute holds devices."""
        return min(self.stage_compute_ms) == 0.0

    def seconds(self, overlap: bool = True) -> float:
        """Its plan's bottleneck by our cost model, on the better of the two placements that a
        whole number of servers per outer stage admits."""
        profile, cluster = load(self.model), self.cluster
        return min(bottleneck(profile, cluster, p, overlap) for p in self.placements())

    def placements(self) -> Iterator[Partition]:
        order, stops = self._cuts()
        firsts = (0, *stops[:-1])
        device, stages = 0, []
        for first, stop, count in zip(firsts, stops, self.replicas, strict=True):
            stages.append(Stage(first, stop, tuple(range(device, device + count))))
            device += count
        yield Partition(tuple(stages), order)
        machines = self.cluster.levels[-1].count
        if len(self.cluster.levels) > 1 and all(count % machines == 0 for count in self.replicas):
            block, at, copied = self.cluster.sizes[1], 0, []
            for stage in stages:
                inner = range(at, at + stage.replicas // machines)
                devices = tuple(d + m * block for d in inner for m in range(machines))
                copied.append(replace(stage, devices=devices))
                at = inner.stop
            yield Partition(tuple(copied), order)

    def _cuts(self) -> tuple[tuple[int, ...], list[int]]:
        """Layers in an order in which each stage's come together, and where stages stop."""
        profile = load(self.model)
        place = {layer.name: index for index, layer in enumerate(profile.layers)}
        inputs: dict[int, list[int]] = {n: [] for n in range(len(place))}
        for producer, consumer in profile.graph.edges:
            inputs[consumer].append(producer)
        order: list[int] = []
        stops: list[int] = []
        for ends in self.stage_ends[:-1]:
            inside = set(order)
            waiting = [place[name] for name in ends]
            while waiting:
                layer = waiting.pop()
                if layer not in inside:
                    inside.add(layer)
                    waiting += inputs[layer]
            order += sorted(inside - set(order))
            stops.append(len(order))
        order += sorted(set(inputs) - set(order))
        return (() if order == sorted(order) else tuple(order)), [*stops, len(order)]


def answers() -> list[Answer]:
    with (FOLDER / "published_planner.csv").open() as file:
        return [
            Answer(
                row["profile"],
                f"{row['cluster']}, {row['topology']}",
                row["optimizer_args"],
                float(row["user_cpu_s"]),
                tuple(int(count) for count in row["config_replicas"].split("-")),
                tuple(
                    tuple(ends.split(","))
                    for ends in row["stage_last_antichain_nodes"].split(" | ")
                ),
                tuple(float(ms) for ms in row["stage_compute_ms_from_node_sets"].split(" | ")),
            )
            for row in csv.DictReader(file)
        ]


def at_batch(profile: Profile, batch: int) -> Profile:
    """Compute and activations in proportion to the batch; weights do not change."""
    share = batch / profile.microbatch
    layers = tuple(
        replace(
            layer,
            forward=layer.forward * share,
            backward=layer.backward * share,
            output_bytes=round(layer.output_bytes * share),
        )
        for layer in profile.layers
    )
    return replace(profile, graph=ModelGraph(layers, profile.graph.edges), microbatch=batch)
