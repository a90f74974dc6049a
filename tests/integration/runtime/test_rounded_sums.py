"""Replicas that sum rounded gradients, as real processes, beside a loop in one process."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from backend.planning.rounded_sums import RoundedSums
from backend.prediction.gradient_sums import StageSums
from backend.runs.events import SUMS_PLAIN, SUMS_SENT
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import CheckpointSpec, TrainSpec
from tests.integration.runtime.test_resume import checkpoints, losses
from tests.integration.runtime.test_thresholds import (
    BATCH,
    EPOCHS,
    MICROBATCH,
    MODEL,
    PLAN,
    RATE,
    SEED,
    _gradients,
    values,
)
from workers.data.cutting import Cutting
from workers.data.split import TensorSplit
from workers.definitions.blueprint.seeded import seeded
from workers.runtime.messages.rounded_sums import DTYPES
from workers.runtime.samples.epoch import Epoch

pytestmark = pytest.mark.slow
NUMBERS = 6 * 40 + 40 + 40 * 20 + 20
"""Weights of the stage that two replicas have."""
UPDATES = 64 // (MICROBATCH * BATCH)


def spec_of(numbers: str, optimizer: str = "sgd", epochs: int = EPOCHS) -> TrainSpec:
    return TrainSpec(
        1,
        replace(PLAN, codec_of_sums=RoundedSums(numbers)),
        optimizer=OptimizerSpec(optimizer, RATE, weight_decay=0.0),
        epochs=epochs,
        seed=SEED,
        checkpoints=CheckpointSpec(updates=1, seconds=0),
    )


def reference(dtype: torch.dtype) -> dict[str, Tensor]:
    """The weights at the end: of stage 0 each replica's gradients are rounded before the sum."""
    torch.set_num_threads(1)
    space: dict = {"nn": nn, "torch": torch}
    exec(MODEL, space)
    model = seeded(space["model"], SEED)
    train, _ = space["data"]()
    weights = {name: p.detach().clone() for name, p in model.named_parameters()}
    for number in range(EPOCHS):
        epoch = Epoch.shuffled(TensorSplit(*train), Cutting(MICROBATCH, BATCH, False), SEED, number)
        for first in range(0, 64 // MICROBATCH, BATCH):
            found = [_gradients(model, weights, epoch, first + n) for n in range(BATCH)]
            for name in weights:
                own = [found[place][name] + found[place + 2][name] for place in (0, 1)]
                if not name.startswith("4"):  # stage 1 has one replica
                    own = [each.to(dtype).double() for each in own]
                weights[name] = weights[name] - RATE * sum(own) / BATCH
    return weights


@pytest.mark.parametrize("numbers", ["bf16", "fp16"])
def test_replicas_learn_as_a_loop_that_rounds_likewise(went_on, tmp_path: Path, numbers: str):
    found = went_on(MODEL, spec_of(numbers))
    saved, expected = load_file(tmp_path / "model.safetensors"), reference(DTYPES[numbers])
    assert max(float((saved[n] - expected[n]).abs().max()) for n in expected) < 1e-10
    plain = reference(torch.float64)
    assert max(float((saved[n] - plain[n]).abs().max()) for n in plain) > 1e-6
    assert values(found, SUMS_SENT) == [2 * 2 * NUMBERS * UPDATES] * EPOCHS
    assert values(found, SUMS_PLAIN) == [2 * 8 * NUMBERS * UPDATES] * EPOCHS


def test_bytes_are_as_predicted(went_on):
    spec = spec_of("bf16", epochs=1)
    found = went_on(MODEL.replace(").double()", ")").replace(".double()", ""), spec)
    sums = StageSums((4 * NUMBERS,), spec.plan.codec_of_sums)
    assert values(found, SUMS_SENT) == [2 * UPDATES * sums.sent(0, 2)]
    plain = StageSums((4 * NUMBERS,))
    assert values(found, SUMS_PLAIN) == [2 * UPDATES * plain.sent(0, 2)]


def test_a_training_goes_on_bit_for_bit_from_one_file_of_a_stage(went_on, tmp_path: Path):
    whole = went_on(MODEL, spec_of("bf16", "adam"))
    end = load_file(tmp_path / "model.safetensors")
    kept = checkpoints(whole)
    begin = kept[len(kept) // 2]
    files = sorted(Path(begin.path).parent.glob("*.safetensors"))
    assert [file.name for file in files] == [f"stage-{n}-pipeline-0.safetensors" for n in (0, 1)]
    rest = went_on(MODEL, spec_of("bf16", "adam"), begin)
    assert losses(rest) == {s: v for s, v in losses(whole).items() if s >= begin.step}
    found = load_file(tmp_path / "model.safetensors")
    assert all(torch.equal(found[name], end[name]) for name in end)
