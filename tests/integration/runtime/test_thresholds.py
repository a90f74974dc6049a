"""Replicas whose sums of gradients are coded, as real processes, beside a loop in one process."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.func import functional_call

from backend.planning.plan import Plan
from backend.planning.thresholds import LEAST, Thresholds
from backend.runs.events import SUMS_PLAIN, SUMS_SENT, Event, Metrics, Saved
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import CheckpointSpec, TrainSpec
from tests.integration.runtime.test_resume import checkpoints, losses, stages
from workers.data.cutting import Cutting
from workers.data.split import TensorSplit
from workers.definitions.blueprint.seeded import seeded
from workers.runtime.samples.epoch import Epoch

pytestmark = pytest.mark.slow
MICROBATCH, BATCH, EPOCHS, SEED, RATE = 4, 4, 3, 5, 0.2
MODEL = """
def model():
    return nn.Sequential(
        nn.Linear(6, 40), nn.Tanh(), nn.Linear(40, 20), nn.Tanh(), nn.Linear(20, 3)
    ).double()
def data():
    generator = torch.Generator().manual_seed(3)
    x = torch.rand(64, 6, generator=generator).double()
    y = torch.randint(3, (64,), generator=generator)
    return (x, y), (x[:8], y[:8])
def loss(output, target):
    return nn.functional.cross_entropy(output, target)
"""
PLAN = Plan("t", stages(0, 3, 5, replicas=(2, 1)), "1f1b-flush", MICROBATCH, BATCH)
CODED = replace(PLAN, codec_of_sums=Thresholds(0.1, 3))
Trained = Callable[..., list[Event]]


@pytest.fixture
def trained(went_on) -> Trained:
    """What the ranks of a plan said, who went on from a checkpoint where one is given."""

    def train(plan: Plan, begin: Saved | None = None, optimizer: str = "sgd") -> list[Event]:
        kept = CheckpointSpec(updates=1, seconds=0)
        rule = OptimizerSpec(optimizer, RATE, weight_decay=0.0)
        spec = TrainSpec(1, plan, optimizer=rule, epochs=EPOCHS, seed=SEED, checkpoints=kept)
        return went_on(MODEL, spec, begin)

    return train


class Replica:
    """What one replica has not sent, and its thresholds."""

    def __init__(self) -> None:
        self.unsent: dict[str, Tensor] = {}
        self.bounds: dict[str, Tensor] = {}

    def sent(self, name: str, gradient: Tensor, codec: Thresholds, update: int) -> Tensor:
        value = gradient + self.unsent.get(name, torch.zeros_like(gradient))
        if update % codec.every == 0:
            kept = max(1, int(value.numel() * codec.keep))
            self.bounds[name] = value.abs().flatten().sort(descending=True).values[kept - 1]
        gone = value.abs() >= self.bounds[name]
        self.unsent[name] = value * ~gone
        return value * gone


def reference(codec: Thresholds) -> tuple[dict[str, Tensor], list[int]]:
    """The weights at the end, and the bytes that the replicas of stage 0 sent in each epoch."""
    torch.set_num_threads(1)
    space: dict = {"nn": nn, "torch": torch}
    exec(MODEL, space)
    model = seeded(space["model"], SEED)
    train, _ = space["data"]()
    weights = {name: p.detach().clone() for name, p in model.named_parameters()}
    replicas, update, sent = [Replica(), Replica()], 0, []
    for number in range(EPOCHS):
        epoch = Epoch.shuffled(TensorSplit(*train), Cutting(MICROBATCH, BATCH, False), SEED, number)
        sent.append(0)
        for first in range(0, 64 // MICROBATCH, BATCH):
            found = [_gradients(model, weights, epoch, first + n) for n in range(BATCH)]
            values = 0
            for name in weights:
                own = [found[place][name] + found[place + 2][name] for place in (0, 1)]
                if name.startswith("4"):  # stage 1 has one replica
                    own = [sum(each[name] for each in found)]
                elif weights[name].numel() >= LEAST:
                    pairs = zip(replicas, own, strict=True)
                    own = [each.sent(name, g, codec, update) for each, g in pairs]
                    values += sum(int(each.count_nonzero()) for each in own)
                else:
                    sent[-1] += 2 * 8 * weights[name].numel()  # 2 (r-1)/r of each of r = 2
                weights[name] = weights[name] - RATE * sum(own) / BATCH
            sent[-1] += values * (8 + 4)
            update += 1
    return weights, sent


def _gradients(model: nn.Module, weights: dict[str, Tensor], epoch: Epoch, number: int) -> dict:
    leaves = {name: weight.clone().requires_grad_() for name, weight in weights.items()}
    output = functional_call(model, leaves, (epoch.inputs(number),))
    loss = nn.functional.cross_entropy(output, epoch.targets(number))
    return dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True))


def values(found: list[Event], name: str) -> list[float]:
    return [v for e in found if isinstance(e, Metrics) and e.name == name for v in e.values]


def test_replicas_learn_and_send_what_a_loop_in_one_process_does(trained, tmp_path: Path) -> None:
    codec = CODED.codec_of_sums
    found = trained(CODED)
    saved = load_file(tmp_path / "model.safetensors")
    expected, sent = reference(codec)
    assert max(float((saved[n] - expected[n]).abs().max()) for n in expected) < 1e-10
    other, _ = reference(replace(codec, every=4))
    assert max(float((saved[n] - other[n]).abs().max()) for n in other) > 1e-5
    assert values(found, SUMS_SENT) == sent
    numbers = 6 * 40 + 40 + 40 * 20 + 20
    assert values(found, SUMS_PLAIN) == [2 * 8 * numbers * 64 // (MICROBATCH * BATCH)] * EPOCHS


def test_all_of_the_gradients_are_the_plain_sum(trained, tmp_path: Path) -> None:
    trained(PLAN)
    plain = load_file(tmp_path / "model.safetensors")
    trained(replace(PLAN, codec_of_sums=Thresholds(1.0)))
    whole = load_file(tmp_path / "model.safetensors")
    assert all(torch.equal(whole[name], plain[name]) for name in plain)


def test_a_training_goes_on_bit_for_bit(trained, tmp_path: Path) -> None:
    whole = trained(CODED, optimizer="adam")
    end = load_file(tmp_path / "model.safetensors")
    kept = checkpoints(whole)
    begin = kept[len(kept) // 2]
    files = sorted(Path(begin.path).parent.glob("*.safetensors"))
    keys = [key for file in files for key in load_file(file)]
    assert len(keys) == len(set(keys))
    unsent = {key for key in keys if key.startswith("unsent")}
    assert unsent == {f"unsent.{n}/{layer}.weight" for n in (0, 1) for layer in (0, 2)}
    rest = trained(CODED, begin, optimizer="adam")
    assert losses(rest) == {s: v for s, v in losses(whole).items() if s >= begin.step}
    found = load_file(tmp_path / "model.safetensors")
    assert all(torch.equal(found[name], end[name]) for name in end)
