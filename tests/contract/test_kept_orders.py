"""Contract: plans that keep an order train, on real processes, as the sequential reference does;
torch's own order of a schedule gives the weights of our schedule of that name, bit for bit."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from backend.cluster.cluster import Cluster, Level
from backend.codec import from_json, to_json
from backend.pipeline.exchange.torch_csv import read_csv
from backend.pipeline.kept_order import kept
from backend.planning.plan import Plan
from backend.prediction.kept_orders import with_order
from backend.prediction.question import Question
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from backend.runs.job import Job
from backend.runs.request.combinations import check_combinations
from backend.runs.request.spec import TrainSpec
from tests.contract.launching import launch, losses_by_case
from tests.contract.runtime_cases import HERE, Case
from tests.contract.runtime_reference import reference
from tests.oracles.torch_orders import interleaved, one_f_one_b, zero_bubble_v

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@dataclass(frozen=True)
class Kept:
    """`case` trains by its schedule, and again by `order` of its plan in the place of that."""

    name: str
    case: Case
    order: Callable[[Plan], Plan]

    def spec(self) -> TrainSpec:
        spec = self.case.spec()
        return replace(spec, plan=self.order(spec.plan))


def from_torch(text: str) -> Callable[[Plan], Plan]:
    def order(plan: Plan) -> Plan:
        program = read_csv(text)
        assert program.shape.batch == plan.batch
        return replace(plan, schedule="custom", kept_order=kept(program.ranks))

    return order


def found(plan: Plan) -> Plan:
    """An order found for stages that differ, with slow messages; none of the catalog's."""
    layers = [
        Layer(f"l{n}", "Linear", 1 + 5 * (n % 3), 3 + 2 * (n % 2), 40, 8)
        for n in range(plan.partition.stages[-1].stop)
    ]
    profile = Profile("p", ModelGraph.chain(tuple(layers)), plan.microbatch)
    cluster = Cluster((Level(plan.partition.pipeline_size, 100.0),))
    question = Question(profile, cluster, batch=plan.batch)
    other = with_order(question, replace(plan, schedule="synthesised"))
    assert other.kept_order
    return other


KEPT = (
    Kept(
        "torch-1f1b", Case("residual", "1f1b-flush", "adam", (1, 1)), from_torch(one_f_one_b(2, 4))
    ),
    Kept(
        "torch-interleaved",
        Case("chain", "interleaved", "momentum", (1, 1), 2),
        from_torch(interleaved(2, 2, 4)),
    ),
    Kept(
        "torch-zbv", Case("residual", "zb-v", "adamw", (1, 1), 2), from_torch(zero_bubble_v(2, 4))
    ),
    Kept("found-2", Case("tied", "zb-h1", "adam", (1, 1), extra="clip"), found),
    Kept("found-kept", Case("chain", "zb-h1", "sgd", (1, 1), last="keep"), found),
    Kept(
        "torch-zbv-4",
        Case("noisy", "zb-v", "sgd", (1,) * 4, 2, batch=8),
        from_torch(zero_bubble_v(4, 8)),
    ),
    Kept("found-4", Case("noisy", "zb-h1", "adamw", (1,) * 4, batch=8), found),
    Kept("found-v", Case("noisy", "zb-v", "adamw", (1,) * 4, 2, batch=8), found),
    Kept("found-lora", Case("lora", "zb-h1", "adamw", (1,) * 4), found),
)
EACH = pytest.mark.parametrize("one", KEPT, ids=lambda one: one.name)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[float]]]:
    """The folders of every order, and of the same case by its schedule ("... by rule")."""
    root, lines = tmp_path_factory.mktemp("kept"), []
    for size in sorted({one.case.num_ranks for one in KEPT}):
        own = [one for one in KEPT if one.case.num_ranks == size]
        jobs = [job_of(root, one.name, one.case, one.spec()) for one in own]
        jobs += [job_of(root, f"{one.name} by rule", one.case, one.case.spec()) for one in own]
        lines += launch(jobs, size)
    return root, losses_by_case(lines)


def job_of(root: Path, name: str, case: Case, spec: TrainSpec) -> Path:
    check_combinations(spec)
    folder = root / name
    folder.mkdir()
    file = HERE / "models" / f"{case.model}.py"
    job = Job(1, 1, name, spec, str(file), str(folder), case.num_ranks)
    (folder / "job.json").write_bytes(to_json(Job, job))
    assert from_json(Job, (folder / "job.json").read_bytes()) == job
    return folder / "job.json"


@EACH
def test_weights_and_losses_are_those_of_the_reference(one: Kept, trained) -> None:
    root, losses = trained
    saved, expected = load_file(root / one.name / "model.safetensors"), reference(one.case)
    assert expected.weights.keys() <= saved.keys()
    for name, weight in expected.weights.items():
        assert float((saved[name] - weight).abs().max()) < 1e-10
    assert losses[one.name] == pytest.approx(expected.losses, rel=1e-6)


@EACH
def test_weights_are_those_of_the_schedule(one: Kept, trained) -> None:
    """Bit for bit where it is the same order."""
    root, losses = trained
    own, other = (
        load_file(root / name / "model.safetensors") for name in (one.name, f"{one.name} by rule")
    )
    assert own.keys() == other.keys()
    if one.order is found:
        assert losses[one.name] == pytest.approx(losses[f"{one.name} by rule"], rel=1e-6)
    else:
        assert all(torch.equal(own[name], other[name]) for name in own)
        assert losses[one.name] == losses[f"{one.name} by rule"]
