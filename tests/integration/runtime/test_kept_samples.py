"""Codecs that keep samples, in real processes that end and go on."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file

from backend.errors import InvalidInput
from backend.planning.plan import Plan
from backend.runs.events import HELD_OUT_LOSS, SENT, SENT_PLAIN, Event, Metrics, Saved
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import CheckpointSpec, DataSpec, TrainSpec
from tests.integration.runtime.test_resume import MODEL, checkpoints, files, losses, model, stages
from workers.runtime.execution import kept_samples as module
from workers.runtime.execution.kept_samples import kept_samples

PLAN = Plan("t", stages(0, 2, 4, 8), "1f1b-flush", 4, batch=2, codecs=("aq4", ""))
SAMPLES, EPOCHS, WIDTH = 50, 3, 8
"""Of the samples 48 are used in an epoch, others in each."""
Trained = Callable[..., list[Event]]


@pytest.fixture
def trained(went_on) -> Trained:
    """What the ranks of a plan said, who went on from a checkpoint where one is given."""

    def train(plan: Plan, begin: Saved | None = None, **more) -> list[Event]:
        data, kept = DataSpec("synthetic", SAMPLES), CheckpointSpec(updates=1, seconds=0)
        rule = OptimizerSpec("adam", 0.01)
        spec = TrainSpec(
            1, plan, data=data, optimizer=rule, epochs=EPOCHS, checkpoints=kept, **more
        )
        return went_on(MODEL, spec, begin)

    return train


def values(found: list[Event], name: str) -> list[float]:
    return [v for e in found if isinstance(e, Metrics) and e.name == name for v in e.values]


@pytest.mark.slow
def test_a_training_goes_on_bit_for_bit_within_an_epoch(trained: Trained, tmp_path: Path) -> None:
    """The samples are in the file of the stage that sends them, once."""
    whole = trained(PLAN)
    end = model(tmp_path)
    begin = checkpoints(whole)[8]
    assert (begin.epoch, begin.samples) == (1, 24)
    keys = {key: file for file in files(begin) for key in load_file(file) if "passed/" in key}
    assert set(keys) == {f"passed/1/0/{WIDTH}", f"passed/1/0/{WIDTH}.samples"}
    assert len(set(keys.values())) == 1
    tensors = load_file(next(iter(keys.values())))
    passed = tensors[f"passed/1/0/{WIDTH}.samples"].tolist()
    assert len(passed) == len(set(passed)) >= 48
    assert tensors[f"passed/1/0/{WIDTH}"].shape == (len(passed), WIDTH)
    rest = trained(PLAN, begin)
    assert losses(rest) == {s: v for s, v in losses(whole).items() if s >= begin.step}
    found = model(tmp_path)
    assert all(torch.equal(found[name], end[name]) for name in end)
    assert values(rest, SENT)[-1] == values(whole, SENT)[-1]


@pytest.mark.slow
def test_evaluations_within_an_epoch_leave_what_is_kept_alone(
    trained: Trained, tmp_path: Path
) -> None:
    whole = trained(PLAN)
    end = model(tmp_path)
    often = trained(PLAN, evaluate=2)
    assert values(often, SENT) == values(whole, SENT)
    assert len(values(often, HELD_OUT_LOSS)) == 3 * len(values(whole, HELD_OUT_LOSS)) > 0
    assert all(torch.equal(model(tmp_path)[name], end[name]) for name in end)


@pytest.mark.slow
def test_behind_another_layer_samples_go_plain_once_more(trained: Trained) -> None:
    """And a plan without such a codec goes on from the same checkpoint."""
    whole = trained(PLAN)
    begin = checkpoints(whole)[5]
    assert (begin.epoch, begin.samples) == (1, 0)
    other = replace(PLAN, partition=stages(0, 3, 6, 8))
    sent, coded = values(trained(other, begin), SENT), values(whole, SENT)
    assert sent[0] == coded[0] > coded[1]
    assert sent[1] < sent[0]
    plain = trained(replace(PLAN, codecs=()), begin)
    assert losses(plain).keys() == {step for step in losses(whole) if step >= begin.step}


@pytest.mark.slow
def test_the_first_epoch_goes_plain_and_later_ones_few_bits(trained: Trained) -> None:
    found = trained(PLAN)
    first, *later = values(found, SENT)
    plain = values(found, SENT_PLAIN)[0]
    gradients = 12 * (4 * WIDTH * 4 - (4 * WIDTH + 4))  # twelve microbatches of four samples
    assert first == plain - gradients
    known = 12 * (4 * WIDTH * 4 - (4 * WIDTH // 2 + 4))
    assert all(first - known <= sent < first - known + 3 * WIDTH * 4 for sent in later)


def a_rank(host: int = 0, total: float = 0.0) -> SimpleNamespace:
    """One that has both ends' stages but the first, and another host with as much as `total`."""
    world = SimpleNamespace(
        host=host, hosts=2, on_gpu=False, device=None, total=lambda own: [own[0], own[1] + total]
    )
    messages = SimpleNamespace(kept_per_sample=lambda cut, form: 100 if cut == 0 else 0)
    stages_of = SimpleNamespace(modules={1: None, 2: None})
    return SimpleNamespace(world=world, messages=messages, stages=stages_of)


def test_what_does_not_fit_is_refused_with_the_numbers(monkeypatch) -> None:
    monkeypatch.setattr(module, "free", lambda device: 200_000)
    said = kept_samples(a_rank(), PLAN, 2000, [(4, None)])
    assert "2,000 training samples" in said
    with pytest.raises(InvalidInput, match="2,001 training samples") as caught:
        kept_samples(a_rank(), PLAN, 2001, [(4, None)])
    assert "int4" in caught.value.advice
    with pytest.raises(InvalidInput, match="on this host"):
        kept_samples(a_rank(1, 1.0), PLAN, 2000, [(4, None)])
    assert kept_samples(a_rank(), replace(PLAN, codecs=("int4", "")), 10**9, []) == ""
