"""Replicas that split layers by channels, as real processes: the weights of a loop in one process,
whole models, and checkpoints from which any plan goes on."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.func import functional_call

from backend.planning.channels.layer_split import LayerSplit
from backend.planning.channels.types import LayerType
from backend.planning.plan import Plan
from backend.runs.events import Event, Saved
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import CheckpointSpec, TrainSpec
from tests.contract.runtime_optimizers import RULES, Averaged
from tests.integration.runtime.test_resume import checkpoints, stages
from workers.data.cutting import Cutting
from workers.data.split import TensorSplit
from workers.definitions.blueprint.seeded import seeded
from workers.runtime.samples.epoch import Epoch

pytestmark = pytest.mark.slow
MICROBATCH, BATCH, EPOCHS, SEED, RATE = 4, 4, 2, 5, 0.05
MODEL = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.inner = nn.Embedding(11, 6), nn.Linear(6, 7)
        self.flat, self.act, self.head = nn.Flatten(), nn.Tanh(), nn.Linear(21, 5)
    def forward(self, x):
        return self.head(self.flat(self.act(self.inner(self.table(x)))))
def model():
    return Model().double()
def data():
    generator = torch.Generator().manual_seed(3)
    x = torch.randint(11, (64, 3), generator=generator)
    y = torch.randint(5, (64,), generator=generator)
    return (x, y), (x[:10], y[:10])
def loss(output, target):
    return nn.functional.cross_entropy(output, target)
"""
LAYERS = ("table", "inner", "act", "flat", "head")
BY_INPUTS, BY_OUTPUTS = LayerType.INPUTS, LayerType.OUTPUTS
ONE = Plan("t", stages(0, 5, replicas=(2,)), "1f1b-flush", MICROBATCH, BATCH)
TWO = Plan("t", stages(0, 3, 5, replicas=(2, 1)), "1f1b-flush", MICROBATCH, BATCH)


def splits(kind: LayerType, *names: str, parts: tuple[int, ...] = ()) -> tuple[LayerSplit, ...]:
    return tuple(LayerSplit(name, kind, parts) for name in names)


ALL = ("table", "inner", "head")
PLANS = {
    "outputs": replace(ONE, splits=splits(BY_OUTPUTS, *ALL)),
    "inputs 1:2": replace(ONE, splits=splits(BY_INPUTS, *ALL, parts=(1, 2)), schedule="gpipe"),
    "before another stage": replace(
        TWO,
        splits=splits(BY_OUTPUTS, "table", parts=(3, 1)) + splits(BY_INPUTS, "inner", parts=(3, 1)),
    ),
}
WHOLE = {
    "adam": OptimizerSpec("adam", RATE),
    "sgd": OptimizerSpec("sgd", RATE),
}
APART = {
    "momentum": OptimizerSpec("momentum", RATE, weight_decay=0.1, decayed="all"),
    "adamw": OptimizerSpec("adamw", RATE, weight_decay=0.1, decayed="matrices"),
    "lion": OptimizerSpec("lion", RATE / 10, weight_decay=0.1, decayed="all"),
    "averaged": OptimizerSpec("adam", RATE, ema=0.8),
    "clipped": OptimizerSpec("sgd", 1.0, clip_norm=0.05),
    "clipped by stages": OptimizerSpec("momentum", RATE, clip_norm=0.05, clip_by="stage"),
}
BOTH = OptimizerSpec("adamw", RATE, weight_decay=0.1, decayed="all", ema=0.8, clip_norm=0.1)
Trained = Callable[..., list[Event]]


@pytest.fixture
def trained(went_on) -> Trained:
    """What the ranks of a plan said, who went on from a checkpoint where one is given."""

    def train(plan: Plan, rule: OptimizerSpec, begin: Saved | None = None) -> list[Event]:
        kept = CheckpointSpec(updates=1, seconds=0)
        spec = TrainSpec(1, plan, optimizer=rule, epochs=EPOCHS, seed=SEED, checkpoints=kept)
        return went_on(MODEL, spec, begin)

    return train


def reference(asked: OptimizerSpec, plan: Plan = ONE) -> dict[str, Tensor]:
    """The whole model's weights at the end, trained in this process by torch's own optimizer."""
    torch.set_num_threads(1)
    space: dict = {"nn": nn, "torch": torch}
    exec(MODEL, space)
    model = seeded(space["model"], SEED)
    train, _ = space["data"]()
    named = dict(model.named_parameters())
    more = {"momentum": asked.momentum} if asked.name == "momentum" else {}
    decays = (asked.weight_decay * (asked.decayed == "all" or w.dim() > 1) for w in named.values())
    rule = RULES[asked.name](
        [
            {"params": [weight], "weight_decay": decay}
            for weight, decay in zip(named.values(), decays, strict=True)
        ],
        lr=asked.learning_rate,
        **more,
    )
    averaged = Averaged(named, asked.ema) if asked.ema else None
    for number in range(EPOCHS):
        epoch = Epoch.shuffled(TensorSplit(*train), Cutting(MICROBATCH, BATCH, False), SEED, number)
        for first in range(0, 64 // MICROBATCH, BATCH):
            rule.zero_grad()
            for n in range(first, first + BATCH):
                output = functional_call(model, dict(model.named_parameters()), (epoch.inputs(n),))
                (nn.functional.cross_entropy(output, epoch.targets(n)) / BATCH).backward()
            for together in clipped_together(named, asked, plan):
                nn.utils.clip_grad_norm_(together, asked.clip_norm)
            rule.step()
            if averaged:
                averaged.follow(named)
    return averaged.named() if averaged else {n: weight.detach() for n, weight in named.items()}


def clipped_together(
    named: dict[str, nn.Parameter], asked: OptimizerSpec, plan: Plan
) -> list[list[nn.Parameter]]:
    """The weights that have one norm: those of the model, or of each stage."""
    if asked.clip_norm is None:
        return []
    if asked.clip_by == "model":
        return [list(named.values())]
    return [
        [w for n, w in named.items() if n.partition(".")[0] in LAYERS[stage.first : stage.stop]]
        for stage in plan.partition.stages
    ]


def furthest(found: dict[str, Tensor], expected: dict[str, Tensor]) -> float:
    assert found.keys() == expected.keys()
    return max(float((found[name] - expected[name]).abs().max()) for name in expected)


@pytest.mark.parametrize(
    ("case", "rule"),
    [
        *((case, rule) for case in PLANS for rule in WHOLE),
        *(("before another stage", rule) for rule in APART),
    ],
)
def test_split_layers_learn_what_whole_ones_do(
    trained, tmp_path: Path, case: str, rule: str
) -> None:
    asked = (WHOLE | APART)[rule]
    trained(PLANS[case], asked)
    saved = load_file(tmp_path / "model.safetensors")
    assert furthest(saved, reference(asked, PLANS[case])) < 1e-10


def test_the_norm_that_is_clipped_is_reached() -> None:
    """Else nothing is told of clipping."""
    for rule in ("clipped", "clipped by stages"):
        free = replace(APART[rule], clip_norm=None, clip_by="model")
        assert furthest(reference(APART[rule], TWO), reference(free)) > 1e-3


@pytest.mark.parametrize(
    ("case", "asked"), [("inputs 1:2", WHOLE["adam"]), ("before another stage", BOTH)]
)
def test_a_training_goes_on_split_and_whole(
    trained, tmp_path: Path, case: str, asked: OptimizerSpec
) -> None:
    """Weights, the optimizer's state and the average of all slices are in a checkpoint once, and
    both kinds of plan go on from those of the other."""
    plan = PLANS[case]
    plain, expected = replace(plan, splits=()), reference(asked, plan)
    for before, behind in ((plan, plan), (plan, plain), (plain, plan)):
        whole = trained(before, asked)
        kept = checkpoints(whole)
        begin = kept[len(kept) // 2]
        files = sorted(Path(begin.path).parent.glob("*.safetensors"))
        keys = [key for file in files for key in load_file(file)]
        assert len(keys) == len(set(keys))
        trained(behind, asked, begin)
        assert furthest(load_file(tmp_path / "model.safetensors"), expected) < 1e-10
