"""Metrics of the definition, logged by its loss, and evaluations between the ends of epochs."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from backend.cluster.cluster import Cluster, Level
from backend.codec import from_json, to_json
from backend.planning.sites import Sites
from backend.prediction import predict
from backend.profiles.layer import Layer
from backend.profiles.profile import ModelGraph, Profile
from backend.runs.events import (
    ENERGY,
    HELD_OUT_LOSS,
    PERPLEXITY,
    SITES_SENT,
    SITES_SPREAD,
    SITES_SUMS,
    Finished,
    Metrics,
    RankError,
    Saved,
    Spans,
)
from backend.runs.job import Job
from backend.runs.request.spec import CheckpointSpec, DataSpec, StopSpec
from workers.data.catalog import load as load_data
from workers.definitions.loader import load

pytestmark = pytest.mark.slow

DEFINITION = """
def model():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 10))
DATA = "digits"
def loss(output, target, log):
    found = nn.functional.cross_entropy(output, target)
    log("half", found / 2)
    return found
def metrics(output, target):
    said = output.argmax(-1) == 3
    hits = (said & (target == 3)).sum()
    return {"f1": (2 * hits, said.sum() + (target == 3).sum()), "largest": output.max(-1)[0].mean()}
"""


def points(found, name: str) -> list[tuple[int, float]]:
    events = [event for event in found if isinstance(event, Metrics) and event.name == name]
    return [pair for event in events for pair in zip(event.steps, event.values, strict=True)]


def test_metrics_between_the_ends_of_epochs_change_nothing(
    write_job, train_spec, ended, tmp_path: Path
) -> None:
    """A schedule that flushes learns the same with and without evaluations, to the last bit."""
    spec = train_spec(0, 2, 4, schedule="1f1b-flush", batch=2, epochs=2)
    _, whole, _ = ended(write_job(DEFINITION, spec), 2)
    without = load_file(tmp_path / "model.safetensors")
    codes, found, text = ended(write_job(DEFINITION, replace(spec, evaluate=20)), 2)
    assert codes == [0, 0], text
    trained = load_file(tmp_path / "model.safetensors")
    assert all(torch.equal(trained[name], without[name]) for name in without)
    losses = points(found, "loss")
    assert losses == points(whole, "loss")
    assert points(found, "half") == [(step, loss / 2) for step, loss in losses]
    assert [step for step, _ in points(found, "f1")] == [19, 39, 43, 59, 79, 87]
    assert points(found, "f1")[2::3] == points(whole, "f1")
    assert [step for step, _ in points(found, "throughput")] == [43, 87]
    measured = [event for event in found if isinstance(event, Spans) and event.kind == "measured"]
    assert sorted((event.segment, event.rank) for event in measured) == [
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
    ]
    _metrics_are_those_of_the_model(tmp_path, {name: points(found, name)[-1][1] for name in NAMES})


NAMES = ("f1", "largest", HELD_OUT_LOSS)


def _metrics_are_those_of_the_model(folder: Path, told: dict[str, float]) -> None:
    definition = load(folder / "mine.py")
    trained = definition.model()
    trained.load_state_dict(load_file(folder / "model.safetensors"))
    part = load_data(DataSpec(), definition).held_out
    with torch.no_grad():
        output = trained.eval()(part.all_inputs)
    own = definition.metrics(output, part.all_targets)
    assert told["f1"] == float(own["f1"][0]) / float(own["f1"][1])
    assert told["largest"] == pytest.approx(float(own["largest"]), rel=1e-5)
    loss = float(definition.loss(output, part.all_targets))
    assert told[HELD_OUT_LOSS] == pytest.approx(loss, rel=1e-5)


def test_replicas_log_the_mean_over_all_of_them(
    write_job, train_spec, ended, tmp_path: Path
) -> None:
    """360 held-out samples fill 22.5 of 24 microbatches: one is nothing but padding."""
    spec = train_spec(0, 4, replicas=2, schedule="1f1b-flush", batch=2, epochs=1)
    codes, found, text = ended(write_job(DEFINITION, spec), 2)
    assert codes == [0, 0], text
    losses = points(found, "loss")
    assert [step for step, _ in points(found, "half")] == [step for step, _ in losses]
    for (_, half), (_, loss) in zip(points(found, "half"), losses, strict=True):
        assert half == pytest.approx(loss / 2, rel=1e-6)
    _metrics_are_those_of_the_model(tmp_path, {name: points(found, name)[-1][1] for name in NAMES})


TEXT = """
def model():
    return nn.Sequential(nn.Embedding(7, 8), nn.Linear(8, 7))
def example(batch):
    return torch.randint(7, (batch, 5)), torch.randint(7, (batch, 5))
"""


def test_texts_have_a_perplexity(write_job, train_spec, ended) -> None:
    """All samples are as long as each other, so the loss is the mean over the tokens."""
    spec = train_spec(0, 1, 2, schedule="gpipe", epochs=1)
    codes, found, text = ended(write_job(TEXT, spec), 2)
    assert codes == [0, 0], text
    ((step, loss),) = points(found, HELD_OUT_LOSS)
    ((place, perplexity),) = points(found, PERPLEXITY)
    assert step == place
    assert perplexity == pytest.approx(math.exp(loss), rel=1e-5)


def test_a_loss_that_is_for_training_alone_is_said(write_job, train_spec, ended) -> None:
    """In evaluation the model gives one tensor, which this loss does not take."""
    own = """
class Two(nn.Linear):
    def forward(self, x):
        y = super().forward(x)
        return (y, y) if self.training else y
def model():
    return Two(8, 3)
def example(batch):
    return torch.rand(batch, 8), torch.randint(3, (batch,))
def loss(output, target):
    if not isinstance(output, tuple):
        raise TypeError("two outputs are wanted")
    return nn.functional.cross_entropy(output[0], target)
"""
    codes, found, text = ended(write_job(own, train_spec(0, 2, epochs=2)), 1)
    assert codes == [0], text
    assert points(found, HELD_OUT_LOSS) == []
    assert text.count("The held-out loss is not known") == 1
    assert "two outputs are wanted" in text


def test_metrics_that_raise_are_the_users(write_job, train_spec, ended) -> None:
    broken = DEFINITION.replace('"f1": (2 * hits', '"f1": (2 * nothing')
    spec = train_spec(0, 4, epochs=1)
    codes, found, _ = ended(write_job(broken, spec))
    assert codes == [1]
    (failure,) = (event for event in found if isinstance(event, RankError))
    assert failure.kind == "ModelRaised"
    assert "name 'nothing' is not defined" in failure.message
    assert "mine.py" in failure.message


def test_patience_goes_on_where_an_earlier_attempt_left(write_job, train_spec, ended) -> None:
    """The metric is always the same, so the first evaluation is the best one."""
    same = DEFINITION.replace('{"f1": (2 * hits', '{"same": 1, "f1": (2 * hits')
    stop = StopSpec(patience=3, metric="same", better="larger")
    spec = train_spec(0, 2, 4, schedule="gpipe", epochs=2, evaluate=20, stop=stop)
    path = write_job(same, spec)
    codes, found, text = ended(path, 2)
    assert codes == [0, 0], text
    assert [step for step, _ in points(found, "same")] == [19, 39, 59, 79]
    assert text.count("same has not been better than 1 for 3 evaluations") == 1
    assert {event.epochs for event in found if isinstance(event, Finished)} == {0}
    job = from_json(Job, path.read_bytes())
    path.write_bytes(to_json(Job, replace(job, watched=(1.0, 0.5))))
    _, found, text = ended(path, 2)
    assert [step for step, _ in points(found, "same")] == [19, 39], text


def test_a_run_ends_after_its_last_update_or_in_time(write_job, train_spec, ended) -> None:
    spec = train_spec(0, 4, schedule="gpipe", epochs=2, evaluate=50)
    late = replace(spec, stop=StopSpec(updates=93))
    codes, found, text = ended(write_job(DEFINITION, late), 1)
    assert codes == [0], text
    assert [step for step, _ in points(found, "f1")] == [49, 88, 92]
    assert len(points(found, "loss")) == 93
    assert "93 weight updates are made" in text
    assert {event.epochs for event in found if isinstance(event, Finished)} == {1}
    _, found, text = ended(write_job(DEFINITION, replace(spec, stop=StopSpec(seconds=1e-9))), 1)
    assert [step for step, _ in points(found, "f1")] == [49], text


def test_patience_says_what_it_does_not_find(write_job, train_spec, ended) -> None:
    stop = StopSpec(patience=1, metric="fi", better="larger")
    _, found, text = ended(write_job(DEFINITION, train_spec(0, 4, epochs=2, stop=stop)), 1)
    assert len(points(found, "f1")) == 2
    assert text.count("'fi' is watched, which this evaluation has not told: there are") == 1


def test_the_best_evaluation_is_kept_as_a_checkpoint(
    write_job, train_spec, ended, tmp_path: Path
) -> None:
    """Its weights give the value that the evaluation told."""
    keeps = CheckpointSpec(seconds=0, best=True)
    stop = StopSpec(metric="f1", better="larger")
    spec = train_spec(0, 2, 4, schedule="gpipe", epochs=2, evaluate=20, stop=stop)
    codes, found, text = ended(write_job(DEFINITION, replace(spec, checkpoints=keeps)), 2)
    assert codes == [0, 0], text
    told = points(found, "f1")
    better = [
        told[k] for k in range(len(told)) if told[k][1] > max([-1, *(v for _, v in told[:k])])
    ]
    every = [event for event in found if isinstance(event, Saved)]
    assert all(event.num_files == 2 for event in every)
    saved = [event for event in every if event.best]
    assert {event.epoch for event in every if not event.best} <= {2}, "that of the end"
    assert sorted({event.step for event in saved}) == [step + 1 for step, _ in better]
    last = [event.path for event in saved if event.step == better[-1][0] + 1]
    weights = {
        name.removeprefix("weight/"): tensor
        for path in last
        for name, tensor in load_file(path).items()
        if name.startswith("weight/")
    }
    definition = load(tmp_path / "mine.py")
    trained = definition.model()
    trained.load_state_dict(weights)
    part = load_data(DataSpec(), definition).held_out
    with torch.no_grad():
        total, count = definition.metrics(trained(part.all_inputs), part.all_targets)["f1"]
    assert float(total) / float(count) == better[-1][1]


def test_bytes_between_sites_are_told_beside_those_of_sums_and_are_those_that_are_predicted(
    write_job, train_spec, ended, tmp_path: Path, monkeypatch
) -> None:
    spec = train_spec(0, 4, schedule="1f1b-flush", batch=2, epochs=1)
    sites = Sites("diloco", every=4, devices=1)
    plan = replace(spec.plan, num_pipelines=2, sites=sites)
    codes, found, text = ended(write_job(DEFINITION, replace(spec, plan=plan)), 2)
    assert codes == [0, 0], text
    weights = sum(tensor.nbytes for tensor in load_file(tmp_path / "model.safetensors").values())
    updates = len(points(found, "loss"))
    assert updates >= 4
    assert points(found, SITES_SENT)[0][1] == 2 * weights * (updates // 4)
    assert points(found, SITES_SUMS)[0][1] == 2 * weights * updates
    for most in (predict.MOST_FORWARDS, 0):  # simulated, and estimated: nothing else is sent
        monkeypatch.setattr(predict, "MOST_FORWARDS", most)
        layers = [Layer(f"{n}", "Linear", 1e-3, 1e-3, 96, weights * (n == 1)) for n in range(4)]
        profile = Profile("digits", ModelGraph.chain(tuple(layers)), plan.microbatch)
        told = predict.predict(profile, Cluster((Level(2, 1e8),)), plan)
        assert told.is_simulated == (most > 0)
        counted = updates // 4 * 4 * plan.num_pipelines
        assert points(found, SITES_SENT)[0][1] == pytest.approx(told.sent_bytes * counted)
    [(_, spread)] = points(found, SITES_SPREAD)
    assert (0 < spread < 1) if updates % 4 else spread == 0  # sites are one once they exchanged


def test_sites_that_would_never_exchange_are_refused(write_job, train_spec, ended) -> None:
    spec = train_spec(0, 4, schedule="1f1b-flush", batch=2, epochs=1)
    plan = replace(spec.plan, num_pipelines=2, sites=Sites("diloco", every=10_000, devices=1))
    codes, _, text = ended(write_job(DEFINITION, replace(spec, plan=plan)), 2)
    assert 0 not in codes
    assert "sites exchange every 10,000 updates, and the run has" in text


COUNTED = """
from pathlib import Path
from workers.runtime.reports import energy_meter
energy_meter.POWERCAP = Path({root!r})
COUNTER = energy_meter.POWERCAP / "intel-rapl:0" / "energy_uj"
def loss(output, target):
    if output.requires_grad:
        COUNTER.write_text(str(int(COUNTER.read_text()) + 3_000_000))
    return nn.functional.cross_entropy(output, target)
"""


def test_joules_of_a_sample_are_those_that_the_host_counts(
    write_job, train_spec, ended, tmp_path: Path
) -> None:
    """A made-up counter, to which each microbatch adds 3 J: two ranks read it and count once."""
    folder = tmp_path / "powercap" / "intel-rapl:0"
    folder.mkdir(parents=True)
    (folder / "energy_uj").write_text("0")
    (folder / "max_energy_range_uj").write_text("99000000000")
    spec = train_spec(0, 2, 4, schedule="1f1b-flush", batch=2, epochs=2)
    definition = DEFINITION.split("def loss")[0] + COUNTED.format(root=str(tmp_path / "powercap"))
    codes, found, text = ended(write_job(definition, spec), 2)
    assert codes == [0, 0], text
    each = [value for _, value in points(found, ENERGY)]
    assert len(each) == 2
    assert each == pytest.approx([3 / spec.plan.microbatch] * 2, rel=0.1)
