"""Contract of local losses: what real processes learn is, bit for bit and whatever their timing,
what one loop learns that runs stage after stage, whose heads and losses are the same."""

import math
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from backend.codec import to_json
from backend.pipeline.actions import Flow
from backend.pipeline.codecs.catalog import codecs_of
from backend.pipeline.schedules.catalog import SCHEDULES
from backend.planning.plan import Partition, Plan, Stage
from backend.planning.sites import read_sites
from backend.prediction.cut_messages import CutMessages
from backend.profiles.layer import Layer
from backend.profiles.profile import Profile
from backend.runs.events import ACCURACY, HELD_OUT_LOSS, LOSS, SENT, SENT_PLAIN, of_stage
from backend.runs.job import Job
from backend.runs.request.local_heads import LOCAL_HEADS
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import TrainSpec
from tests.contract.launching import launch, losses_by_case
from tests.contract.models import hesitant
from workers.data.cutting import Cutting
from workers.data.split import TensorSplit
from workers.definitions.blueprint.seeded import seeded
from workers.definitions.definition import cross_entropy
from workers.definitions.layering import layered
from workers.definitions.tracing.record import TensorSpec
from workers.profiler.described import graph_of
from workers.runtime.compute.local_heads.local_loss import LocalLosses
from workers.runtime.compute.random_numbers import forward_seed
from workers.runtime.samples.epoch import Epoch

FILE = Path(hesitant.__file__)
MICROBATCH, BATCH, EPOCHS, SEED = 3, 4, 2, 5
CUTS = {1: (0, 10), 2: (0, 6, 10), 3: (0, 3, 6, 10), 4: (0, 3, 6, 9, 10)}
"""By number of stages, in layers of the model as it is cut: a part that waits is two of them."""
LOCAL = next(name for name, rule in SCHEDULES.items() if rule.local)


@dataclass(frozen=True)
class Case:
    stages: int
    head: str
    replicas: tuple[int, ...] = ()
    recompute: bool = False
    codec: str = ""
    between: str = ""

    @property
    def name(self) -> str:
        more = ["again"] * self.recompute + list(map(str, self.replicas))
        more += [self.codec] * bool(self.codec) + [self.between.partition(":")[0]]
        return "-".join(filter(None, [f"{self.stages}stages", self.head, *more]))

    @property
    def num_sites(self) -> int:
        return 2 if self.between else 1

    @property
    def num_ranks(self) -> int:
        return sum(self.counts) * self.num_sites

    @property
    def counts(self) -> tuple[int, ...]:
        return self.replicas or (1,) * self.stages

    def spec(self) -> TrainSpec:
        firsts = [sum(self.counts[:n]) for n in range(self.stages)]
        devices = [tuple(range(a, a + n)) for a, n in zip(firsts, self.counts, strict=True)]
        cuts = zip(pairwise(CUTS[self.stages]), devices, strict=True)
        partition = Partition(tuple(Stage(*cut, own) for cut, own in cuts))
        codecs = codecs_of(self.codec, self.stages - 1)
        plan = Plan(
            "test",
            partition,
            LOCAL,
            MICROBATCH,
            BATCH // self.num_sites,
            self.recompute,
            num_pipelines=self.num_sites,
            codecs=codecs,
            sites=read_sites(self.between),
        )
        rule = OptimizerSpec("momentum", 0.2)
        tracing = "symbolic" if self.stages > 1 else ""
        how = {"optimizer": rule, "local_head": self.head, "tracing": tracing}
        return TrainSpec(1, plan, epochs=EPOCHS, seed=SEED, **how)


STRAIGHT = [Case(stages, head) for stages in CUTS for head in LOCAL_HEADS]
CODED = Case(3, "linear", codec="bf16")
SITES = [
    Case(2, "linear", between=rule)
    for rule in ("diloco:every=1,rate=1,momentum=0", "gaia:threshold=0")
]
"""Two that exchange all that they learn, after each update of half as many microbatches."""
CASES = [*STRAIGHT, Case(3, "linear", recompute=True), Case(2, "linear", (2, 1)), CODED, *SITES]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Every case run by real processes: the folder of all, and what was printed."""
    root, lines = tmp_path_factory.mktemp("local"), []
    for size in sorted({case.num_ranks for case in CASES}):
        jobs = [_job(root, case) for case in CASES if case.num_ranks == size]
        lines += launch(jobs, size)
    return root, lines


def _job(root: Path, case: Case) -> Path:
    folder = root / case.name
    folder.mkdir()
    job = Job(1, 1, case.name, case.spec(), str(FILE), str(folder), case.num_ranks)
    (folder / "job.json").write_bytes(to_json(Job, job))
    return folder / "job.json"


@dataclass
class Learnt:
    """By stage: the losses of updates, and of held-out samples the share that its head knows."""

    weights: dict[str, Tensor]
    losses: dict[int, list[float]]
    accuracies: dict[int, list[float]]


@cache
def sequential(stages: int, head: str) -> Learnt:
    """One process, one thread: stage after stage, microbatch after microbatch."""
    torch.set_num_threads(1)
    model = seeded(hesitant.model, SEED).train()
    # a Hesitant is two layers of the model as it is cut, and one part of the chain
    bounds = [layer // 3 * 2 for layer in CUTS[stages][:-1]] + [len(model)]
    parts = [model[first:stop] for first, stop in pairwise(bounds)]
    losses = LocalLosses(head, hesitant.WIDTH, (MICROBATCH,), SEED, torch.device("cpu"))
    spec = TensorSpec((MICROBATCH, hesitant.WIDTH), torch.float64, True)
    heads = [losses.made(n, (spec,), cross_entropy) for n in range(stages - 1)]
    weights = [
        [*part.parameters(), *(heads[n].head.parameters() if n < stages - 1 else ())]
        for n, part in enumerate(parts)
    ]
    optimizers = [torch.optim.SGD(own, 0.2, 0.9, fused=True) for own in weights]
    learnt = Learnt({}, *({n: [] for n in range(stages)} for _ in range(2)))
    torch.manual_seed(0)
    train, held_out = hesitant.data()
    for number in range(EPOCHS):
        epoch = Epoch.shuffled(TensorSplit(*train), Cutting(MICROBATCH, BATCH), SEED, number)
        sums = [0.0] * stages
        for k in range(len(epoch.groups)):
            value = epoch.inputs(k)
            for n, part in enumerate(parts):
                torch.manual_seed(forward_seed(SEED, number, n, k))
                out, answers = part(value), epoch.targets(k)
                last = n == stages - 1
                loss = cross_entropy(out, answers) if last else heads[n]((out,), answers)
                loss.backward()
                sums[n] += loss.item()
                value = out.detach()
            if k % BATCH == BATCH - 1:
                for n, optimizer in enumerate(optimizers):
                    for weight in weights[n]:
                        weight.grad /= BATCH
                    optimizer.step()
                    optimizer.zero_grad()
                    learnt.losses[n].append(sums[n] / BATCH)
                sums = [0.0] * stages
        value = held_out[0]
        for n, part in enumerate(parts):
            with torch.no_grad():
                value = part(value)
                scores = value if n == stages - 1 else heads[n].head((value,))
            right = (scores.argmax(-1) == held_out[1]).sum().item()
            learnt.accuracies[n].append(right / len(held_out[1]))
    learnt.weights = {name: weight.detach() for name, weight in model.named_parameters()}
    return learnt


@pytest.mark.parametrize("case", STRAIGHT, ids=lambda case: case.name)
def test_weights_and_losses_are_those_of_the_loop_bit_for_bit(case: Case, told) -> None:
    expected = sequential(case.stages, case.head)
    saved = load_file(told[0] / case.name / "model.safetensors")
    assert saved.keys() == expected.weights.keys()
    assert not [name for name in saved if not torch.equal(saved[name], expected.weights[name])]
    for n in range(case.stages):
        last = n == case.stages - 1
        named = {name: name if last else of_stage(name, n) for name in (LOSS, ACCURACY)}
        assert losses_by_case(told[1], named[LOSS])[case.name] == expected.losses[n]
        accuracies = losses_by_case(told[1], named[ACCURACY])[case.name]
        assert accuracies == pytest.approx(expected.accuracies[n])
        name = HELD_OUT_LOSS if last else of_stage(HELD_OUT_LOSS, n)
        assert len(losses_by_case(told[1], name)[case.name]) == EPOCHS


def test_recomputation_changes_no_bit(told) -> None:
    root, _ = told
    again = load_file(root / Case(3, "linear", recompute=True).name / "model.safetensors")
    kept = load_file(root / Case(3, "linear").name / "model.safetensors")
    assert not [name for name in kept if not torch.equal(kept[name], again[name])]


def test_replicas_learn_what_one_rank_learns(told) -> None:
    """Their sums have another order, so the last bits are their own."""
    expected = sequential(2, "linear")
    case = Case(2, "linear", (2, 1))
    saved = load_file(told[0] / case.name / "model.safetensors")
    for name, weight in expected.weights.items():
        torch.testing.assert_close(saved[name], weight, rtol=1e-7, atol=1e-9)
    losses = losses_by_case(told[1], of_stage(LOSS, 0))[case.name]
    assert losses == pytest.approx(expected.losses[0])


@pytest.mark.parametrize("case", SITES, ids=lambda case: case.name)
def test_sites_that_exchange_all_learn_what_one_learns(case: Case, told) -> None:
    """Their means have another order, so the last bits are their own."""
    expected = sequential(2, "linear")
    saved = load_file(told[0] / case.name / "model.safetensors")
    for name, weight in expected.weights.items():
        torch.testing.assert_close(saved[name], weight, rtol=1e-7, atol=1e-9)


def test_bytes_are_those_of_activations_and_no_gradient(told) -> None:
    """To the byte, coded and plain: of each cut so many numbers of each sample, one way."""
    model = layered(hesitant.model(), hesitant.data()[0][0][:MICROBATCH], "fine")
    layers = (Layer(part.name, part.kind, 0.0, 0.0, 0, 0) for part in model.layers)
    profile = Profile("hesitant", graph_of(model, layers), MICROBATCH)
    plan = CODED.spec().plan
    messages = CutMessages(profile, plan.partition, plan.codecs, local=True)
    numbers = 48 * hesitant.WIDTH * (CODED.stages - 1)
    for name, sizes, width in ((SENT, messages.sent, 2), (SENT_PLAIN, messages.plain, 8)):
        predicted = 48 // MICROBATCH * sum(map(sum, sizes.values()))
        assert sum(sizes[Flow.GRADIENT]) == 0
        assert predicted == width * numbers
        assert losses_by_case(told[1], name)[CODED.name] == [predicted] * EPOCHS


@pytest.mark.parametrize("head", ["linear", "low-rank"])
def test_a_head_begins_with_equal_scores(head: str) -> None:
    """Its first loss, before the first update, is the entropy of equal classes."""
    learnt = sequential(4, head)
    for n in range(3):
        assert learnt.losses[n][0] == pytest.approx(math.log(hesitant.WIDTH))


def test_a_head_is_not_saved_with_the_model(told) -> None:
    names = load_file(told[0] / Case(4, "linear").name / "model.safetensors").keys()
    assert names == hesitant.model().state_dict().keys()
