"""Contract: after k updates by real processes, every weight is what the versions say.

The reference below knows no program and no executor: plain autograd in one process, with a
list of weight versions per stage. In 1F1B with stashing, stage s of replicas r keeps
d_s = ceil(sum of r from s on / r_s) microbatches in flight, so the j-th microbatch of a
replica meets version max(0, j - d_s + 1); for a straight pipeline of n stages this is
PipeDream's w(t+1) = w(t) - lr grad f(w_1(t-n+1), ..., w_n(t)) (SOSP 2019, section 3.3).
With vertical sync every stage reads what the input stage chose; with double buffering (2bw)
every stage reads version max(0, floor(k / batch) - 1) and updates once per batch.
"""

import importlib.util
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.func import functional_call

from backend.codec import to_json
from backend.pipeline.schedules.catalog import executable_schedules
from backend.planning.plan import Partition, Plan, Stage
from backend.runs.events import Metrics, read_line
from backend.runs.job import Job
from backend.runs.spec import OptimizerSpec, TrainSpec
from workers.runtime.data import Epoch

HERE = Path(__file__).parent
MICROBATCH, BATCH, EPOCHS, SEED, MICROBATCHES = 2, 4, 2, 7, 12
RATES = {"sgd": 0.2, "momentum": 0.1, "adam": 0.02}
SHAPES = ((1, 1), (2,), (1, 1, 1), (2, 1), (1, 2))
LAYERS = {
    "chain": ["0", "1", "2", "3", "4"],
    "residual": ["a", "", "b", "", "c", "scale", "", "", "d"],
}
"""Per model the parameters' prefix of each layer, in running order."""
CUTS = {"chain": (2, 3), "residual": (3, 5)}


@dataclass(frozen=True)
class Case:
    model: str
    schedule: str
    optimizer: str
    replicas: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"{self.model}-{self.schedule}-{self.optimizer}-{'.'.join(map(str, self.replicas))}"

    @property
    def bounds(self) -> list[int]:
        """The first layer of each stage, and the number of layers."""
        inner = CUTS[self.model][: len(self.replicas) - 1]
        return [0, *inner, len(LAYERS[self.model])]

    def stage_of(self, parameter: str) -> int:
        layer = LAYERS[self.model].index(parameter.split(".")[0])
        return sum(layer >= bound for bound in self.bounds[1:])

    def spec(self) -> TrainSpec:
        device = iter(range(9))
        stages = tuple(
            Stage(first, stop, tuple(next(device) for _ in range(count)))
            for first, stop, count in zip(self.bounds, self.bounds[1:], self.replicas, strict=False)
        )
        return TrainSpec(
            definition_id=1,
            plan=Plan("test", Partition(stages), self.schedule, MICROBATCH, BATCH),
            optimizer=OptimizerSpec(self.optimizer, RATES[self.optimizer]),
            epochs=EPOCHS,
            seed=SEED,
        )


SCHEDULES = tuple(schedule.name for schedule in executable_schedules())
STALE_SCHEDULES = ("pipedream", "pipedream-vertical-sync", "2bw")
CASES = tuple(Case(*each) for each in product(LAYERS, SCHEDULES, RATES, SHAPES))


def definition(case: Case):
    file = HERE / "models" / f"{case.model}.py"
    spec = importlib.util.spec_from_file_location(case.model, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass
class Reference:
    """The weights after all epochs and the loss of every update of the last stage."""

    weights: dict[str, Tensor]
    losses: list[float]


def reference(case: Case, versions_count: bool = True) -> Reference:
    """`versions_count=False` is the negative control: everybody reads the newest weights."""
    module = definition(case)
    torch.manual_seed(SEED)
    trained = _Stages(case, module.model())
    torch.manual_seed(0)
    train, _ = module.data()
    for number in range(EPOCHS):
        epoch = Epoch.shuffled(train, MICROBATCH, MICROBATCHES, SEED, number)
        if case.schedule in STALE_SCHEDULES:
            trained.stashed(epoch, versions_count)
        else:
            trained.flushed(epoch)
    return Reference(trained.newest(), trained.losses)


class _Stages:
    def __init__(self, case: Case, model: nn.Module) -> None:
        self.case, self.model, self.losses = case, model, []
        self.count = len(case.replicas)
        self.parameters = [
            {n: p for n, p in model.named_parameters() if case.stage_of(n) == stage}
            for stage in range(self.count)
        ]
        self.optimizers = [self._optimizer(list(p.values())) for p in self.parameters]

    def _optimizer(self, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        rate = RATES[self.case.optimizer]
        if self.case.optimizer == "adam":
            return torch.optim.Adam(parameters, rate)
        return torch.optim.SGD(parameters, rate, 0.9 if self.case.optimizer == "momentum" else 0)

    def newest(self) -> dict[str, Tensor]:
        return {n: p.detach().clone() for n, p in self.model.named_parameters()}

    def _copy(self, stage: int) -> dict[str, Tensor]:
        return {n: p.detach().clone() for n, p in self.parameters[stage].items()}

    def _gradients(self, weights: dict[str, Tensor], epoch: Epoch, k: int):
        leaves = {name: weight.clone().requires_grad_() for name, weight in weights.items()}
        output = functional_call(self.model, leaves, (epoch.inputs(k),))
        loss = nn.functional.cross_entropy(output, epoch.targets(k))
        found = torch.autograd.grad(loss, list(leaves.values()))
        return float(loss.detach()), dict(zip(leaves, found, strict=True))

    def _update(self, stage: int, gradients: list[dict[str, Tensor]]) -> None:
        for name, parameter in self.parameters[stage].items():
            parameter.grad = sum(g[name] for g in gradients) / len(gradients)
        self.optimizers[stage].step()

    def flushed(self, epoch: Epoch) -> None:
        for first in range(0, MICROBATCHES, BATCH):
            pairs = [self._gradients(self.newest(), epoch, first + i) for i in range(BATCH)]
            for stage in range(self.count):
                self._update(stage, [gradients for _, gradients in pairs])
            self.losses.append(sum(loss for loss, _ in pairs) / BATCH)

    def chosen(self, stage: int, k: int) -> int:
        """The version of `stage` that microbatch k reads."""
        r, first = self.case.replicas[stage], self.case.replicas[0]
        at_input = max(0, k // first - -(-sum(self.case.replicas) // first) + 1)
        match self.case.schedule:
            case "2bw":
                return max(0, k // BATCH - 1)
            case "pipedream-vertical-sync":
                return at_input * first // r
            case _:
                in_flight = -(-sum(self.case.replicas[stage:]) // r)
                return max(0, k // r - in_flight + 1)

    def stashed(self, epoch: Epoch, versions_count: bool) -> None:
        replicas = self.case.replicas
        versions = [[self._copy(stage)] for stage in range(self.count)]
        waiting: list[list] = [[] for _ in range(self.count)]
        for k in range(MICROBATCHES):
            weights: dict[str, Tensor] = {}
            for stage in range(self.count):
                chosen = self.chosen(stage, k) if versions_count else -1
                weights |= versions[stage][chosen]
            loss, gradients = self._gradients(weights, epoch, k)
            for stage, r in enumerate(replicas):
                due = BATCH if self.case.schedule == "2bw" else r
                waiting[stage].append((loss, gradients))
                if len(waiting[stage]) == due:
                    self._update(stage, [g for _, g in waiting[stage]])
                    versions[stage].append(self._copy(stage))
                    if stage == self.count - 1:
                        self.losses.append(sum(each for each, _ in waiting[stage]) / due)
                    waiting[stage] = []


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, list[float]]]:
    """Every case run by real gloo processes: its folder, and the losses that were printed."""
    root = tmp_path_factory.mktemp("cases")
    results: dict[str, tuple[Path, list[float]]] = {}
    for size in (2, 3):
        cases = [case for case in CASES if sum(case.replicas) == size]
        lines = launch([_write(root, case, size) for case in cases], size)
        losses = _losses(lines)
        results |= {case.name: (root / case.name, losses[case.name]) for case in cases}
    return results


def _write(root: Path, case: Case, size: int) -> Path:
    folder = root / case.name
    folder.mkdir()
    file = HERE / "models" / f"{case.model}.py"
    job = Job(1, 1, case.name, case.spec(), str(file), str(folder), size)
    (folder / "job.json").write_bytes(to_json(Job, job))
    return folder / "job.json"


def launch(jobs: list[Path], size: int) -> Iterator[str]:
    """Run the jobs on `size` ranks; the lines of all of them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = []
    for rank in range(size):
        world = {"RANK": str(rank), "WORLD_SIZE": str(size)}
        world |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        command = [sys.executable, str(HERE / "train_cases.py"), *map(str, jobs)]
        log = (jobs[0].parent.parent / f"log-{size}-{rank}").open("w+")
        environment = {**os.environ, **world, "PYTHONPATH": str(HERE.parents[1])}
        ranks.append((subprocess.Popen(command, stdout=log, env=environment), log))
    codes = [process.wait(timeout=280) for process, _ in ranks]
    texts = []
    for _, log in ranks:
        log.seek(0)
        texts.append(log.read())
        log.close()
    assert codes == [0] * size, texts
    return (line for text in texts for line in text.splitlines())


def _losses(lines: Iterator[str]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    case = ""
    for line in lines:
        event = read_line(line)
        if line.startswith("case "):
            case = line.removeprefix("case ")
        elif isinstance(event, Metrics) and event.name == "loss":
            found.setdefault(case, []).extend(event.values)
    return found


def distance(a: dict[str, Tensor], b: dict[str, Tensor]) -> float:
    assert a.keys() == b.keys()
    return max(float((a[name] - b[name]).abs().max()) for name in a)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_weights_and_losses_are_those_of_the_versions(case: Case, trained) -> None:
    folder, losses = trained[case.name]
    expected = reference(case)
    assert distance(load_file(folder / "model.safetensors"), expected.weights) < 1e-10
    assert losses == pytest.approx(expected.losses, rel=1e-6)


STALE = [case for case in CASES if case.schedule in STALE_SCHEDULES and len(case.replicas) > 1]


@pytest.mark.slow
@pytest.mark.parametrize("case", STALE, ids=lambda case: case.name)
def test_a_reference_that_ignores_versions_is_told_apart(case: Case, trained) -> None:
    folder, _ = trained[case.name]
    naive = reference(case, versions_count=False)
    assert distance(load_file(folder / "model.safetensors"), naive.weights) > 1e-4
