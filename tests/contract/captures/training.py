"""Models carried from their file to two epochs: captured, profiled, planned for two devices,
trained in one stage and in two by real ranks, and in a plain PyTorch loop beside."""

import gc
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from backend.cluster.cluster import Cluster, Level
from backend.codec import to_json
from backend.planning.balanced import gpipe_balanced
from backend.planning.plan import Partition, Plan, Stage
from backend.profiles.profile import Profile
from backend.runs.job import Job
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import DataSpec, ProfileSpec, TrainSpec
from tests.contract.captures.configs import ARCHITECTURES
from tests.contract.captures.rows import FILES, PAGE, REWRITE, row
from tests.contract.captures.uncut import NEARLY
from tests.contract.launching import launch, losses_by_case
from tests.integration.runtime.plain import plain
from workers.data import catalog
from workers.definitions.loader import load
from workers.profiler.whole_profile import whole_profile
from workers.runtime.reports.reporter import Reporter

MICROBATCH, SEED = 4, 7
PAIR = Cluster((Level(2, 1e9),))
NEAR = 1e-6
"""How far float32 may take two ways of the same sums, relative to the largest value."""


@dataclass(frozen=True, slots=True)
class Captured:
    """A model's file, its profile, and the trainings of its plans: of one stage, and of two."""

    file: Path
    profile: Profile
    specs: tuple[TrainSpec, ...]


@dataclass(frozen=True, slots=True)
class Trained:
    """The losses of every update and the weights at the end."""

    losses: list[float]
    weights: Mapping[str, Tensor]


def file_of(folder: Path, name: str) -> Path:
    """Of a Python file or an architecture."""
    if name not in ARCHITECTURES:
        return FILES / f"{name}.py"
    file = folder / f"{name}.json"
    file.write_text(json.dumps(ARCHITECTURES[name]))
    return file


def captured(file: Path) -> Captured:
    """Profiled once, and planned."""
    torch.set_num_threads(1)
    parameters = {"length": 8} if file.suffix == ".json" else {}
    definition = load(file, parameters)
    spec = ProfileSpec(1, MICROBATCH, repetitions=1, parameters=parameters)
    batch = catalog.example(definition, MICROBATCH)
    profile = whole_profile(definition, batch, spec, torch.device("cpu"), Reporter(0))
    whole = Partition((Stage(0, len(profile.layers), (0,)),))
    pair = gpipe_balanced(_timed_alike(profile), PAIR)
    return Captured(
        file, profile, tuple(_spec(profile, each, parameters) for each in (whole, pair))
    )


def _timed_alike(profile: Profile) -> Profile:
    """The same with equal seconds, so that every time the same plan is made of it."""
    layers = tuple(replace(layer, forward=1.0, backward=2.0) for layer in profile.layers)
    return replace(profile, graph=replace(profile.graph, layers=layers))


def _spec(profile: Profile, partition: Partition, parameters: dict[str, int]) -> TrainSpec:
    return TrainSpec(
        1,
        Plan("test", partition, "1f1b-flush", MICROBATCH, batch=2),
        data=DataSpec("synthetic", 16),
        optimizer=OptimizerSpec("momentum", 0.01),
        epochs=2,
        seed=SEED,
        tracing=profile.tracing,
        parameters=parameters,
    )


def trained(root: Path, models: Mapping[str, Captured]) -> dict[tuple[str, int], Trained]:
    """By name and number of stages; the ranks of one number of stages train model after model."""
    found = {}
    for count in (1, 2):
        jobs = []
        for name, model in models.items():
            folder = root / f"{count}" / name
            folder.mkdir(parents=True)
            spec = model.specs[count - 1]
            job = Job(1, 1, name, spec, str(model.file), str(folder), count)
            (folder / "job.json").write_bytes(to_json(Job, job))
            jobs.append(folder / "job.json")
        losses = losses_by_case(launch(jobs, count))
        for name in models:
            weights = load_file(root / f"{count}" / name / "model.safetensors")
            found[name, count] = Trained(losses[name], weights)
    return found


@dataclass(frozen=True, slots=True)
class Suite:
    """Models with their trainings."""

    models: Mapping[str, Captured]
    trained: Mapping[tuple[str, int], Trained]

    def check(self, name: str) -> None:
        """Two stages are one to the last bit, or `NEARLY`, and near to a plain loop."""
        one, two = self.trained[name, 1], self.trained[name, 2]
        assert two.weights.keys() == one.weights.keys()
        if name in NEARLY:
            assert two.losses == pytest.approx(one.losses, rel=NEAR)
            assert far(two.weights, one.weights) == {}
        else:
            assert two.losses == one.losses
            assert all(torch.equal(two.weights[each], one.weights[each]) for each in one.weights)
        model = self.models[name]
        by_hand = plain(model.file, model.specs[0])
        assert one.losses == pytest.approx(by_hand.losses, rel=NEAR)
        assert len(one.losses) == 4
        assert one.weights.keys() <= by_hand.weights.keys()
        assert far(one.weights, by_hand.weights) == {}
        assert row(name, model.profile) in PAGE.read_text(), REWRITE


def carried_through(folder: Path, names: Sequence[str]) -> Suite:
    """Every model from its file to its end. What torch has imported for the first of them stays:
    each profile collects garbage before it counts memory, and need not look through that."""
    models = {}
    for name in names:
        models[name] = captured(file_of(folder, name))
        if len(models) == 1:
            gc.freeze()
    return Suite(models, trained(folder, models))


def far(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> dict[str, float]:
    """The weights that are not near, and how far they are, relative to the largest value."""
    distances = {
        name: float((one[name].double() - other[name].double()).abs().max())
        / max(1.0, float(one[name].double().abs().max()))
        for name in one.keys() & other.keys()
        if one[name].numel()
    }
    return {name: distance for name, distance in distances.items() if distance > NEAR}
