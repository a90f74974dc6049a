"""Trainings go on from any of their checkpoints, on the same plan and on others."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from backend.planning.plan import Partition, Plan, Stage
from backend.planning.sites import Sites
from backend.profiles.state_precision import StatePrecision
from backend.runs.events import Event, Metrics, Saved
from backend.runs.request.optimizer_spec import OptimizerSpec, ParameterGroup
from backend.runs.request.spec import CheckpointSpec, DataSpec, TrainSpec
from tests.integration.runtime.conftest import RUNTIME
from workers.runtime.state.loss_scale import FIRST

pytestmark = pytest.mark.slow
MODEL = """
def model():
    return nn.Sequential(
        nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Dropout(0.2), nn.Linear(8, 8), nn.Tanh(),
        nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3),
    )
def example(batch):
    torch.manual_seed(3)
    return torch.rand(batch, 6), torch.randint(3, (batch,))
def loss(output, target):
    return nn.functional.cross_entropy(output, target)
"""
PLAIN = MODEL.replace("nn.Dropout(0.2)", "nn.Identity()").replace(
    "nn.BatchNorm1d(8)", "nn.LayerNorm(8)"
)
ADAM = OptimizerSpec("adam", 0.01, clip_norm=None, decay="cosine", warm_up=0.5)
OTHERS = {
    "adafactor": OptimizerSpec("adafactor", 0.05, weight_decay=0.1, decay="inverse-sqrt", ema=0.7),
    "lion": OptimizerSpec(
        "lion", 0.01, groups=(ParameterGroup("7", 0.1),), clip_norm=0.1, clip_by="stage", ema=0.7
    ),
    "adamw": OptimizerSpec(
        "adamw", 0.01, weight_decay=0.1, decayed="matrices", decay="one-cycle", ema=0.7
    ),
}
Trained = Callable[..., list[Event]]


def stages(*bounds: int, replicas: tuple[int, ...] = (), pipeline_size: int = 0) -> Partition:
    """Stages between the bounds; `pipeline_size` where several sit on one device."""
    counts = replicas or (1,) * (len(bounds) - 1)
    places = pipeline_size or len(counts)
    first = [sum(counts[:place]) for place in range(places)]
    devices = [tuple(range(first[p], first[p] + counts[p])) for p in range(places)]
    found = tuple(
        Stage(bounds[s], bounds[s + 1], devices[s % places]) for s in range(len(bounds) - 1)
    )
    return Partition(found, chunks=len(found) // places)


FLUSHING = {
    "replicas": Plan("t", stages(0, 4, 8, replicas=(2, 1)), "1f1b-flush", 4, batch=4),
    "chunks": Plan("t", stages(0, 2, 4, 6, 8, pipeline_size=2), "interleaved", 4, batch=4),
    "pipelines": Plan("t", stages(0, 4, 8), "afp", 4, batch=2, num_pipelines=2, codecs=("int8",)),
    "sites": Plan(
        "t",
        stages(0, 4, 8),
        "1f1b-flush",
        4,
        batch=2,
        num_pipelines=2,
        sites=Sites("diloco", every=3, devices=2),
    ),
    "gaia": Plan("t", stages(0, 8), "1f1b-flush", 4, batch=2, num_pipelines=2, sites=Sites("gaia")),
    "samples": Plan("t", stages(0, 4, 8), "1f1b-flush", 4, batch=4, codecs=("aq4",)),
    "sharded": Plan(
        "t",
        stages(0, 4, 8, replicas=(2, 1)).sharing(((1, 3), ())),
        "1f1b-flush",
        4,
        batch=4,
        shard_state=True,
    ),
}
EXACT = FLUSHING | {"local": Plan("t", stages(0, 4, 8), "local", 4, batch=4)}
STASHING = {
    "pipedream": Plan("t", stages(0, 4, 8), "pipedream", 4),
    "2bw": Plan("t", stages(0, 4, 8), "2bw", 4, batch=2),
    "samples": Plan("t", stages(0, 3, 5, 8), "pipedream", 4, codecs=("aq4", "aq2")),
}


@pytest.fixture
def trained(went_on) -> Trained:
    """What the ranks of a plan said, who went on from a checkpoint where one is given."""

    def train(
        plan: Plan,
        begin: Saved | None = None,
        model: str = MODEL,
        epochs: int = 2,
        precision: Literal["float32", "bfloat16", "float16"] = "float32",
        state: StatePrecision = "float32",
        main: str = RUNTIME,
        optimizer: OptimizerSpec = ADAM,
    ):
        spec = TrainSpec(
            1,
            plan,
            data=DataSpec("synthetic", 64),
            optimizer=optimizer,
            epochs=epochs,
            precision=precision,
            state_precision=state,
            checkpoints=CheckpointSpec(updates=1, seconds=0),
        )
        return went_on(model, spec, begin, main)

    return train


def losses(found: list[Event]) -> dict[int, float]:
    told = [e for e in found if isinstance(e, Metrics) and e.name == "loss"]
    assert len({step for e in told for step in e.steps}) == sum(len(e.steps) for e in told)
    return {step: value for e in told for step, value in zip(e.steps, e.values, strict=True)}


def checkpoints(found: list[Event]) -> list[Saved]:
    """One file of each whole checkpoint, in their order."""
    by_step: dict[int, list[Saved]] = {}
    for event in found:
        if isinstance(event, Saved):
            by_step.setdefault(event.step, []).append(event)
    assert all(len(files) == files[0].num_files for files in by_step.values())
    return [by_step[step][0] for step in sorted(by_step)]


def files(checkpoint: Saved) -> list[Path]:
    return sorted(Path(checkpoint.path).parent.glob("*.safetensors"))


def model(tmp_path: Path) -> dict[str, Tensor]:
    return load_file(tmp_path / "model.safetensors")


def test_another_partition_reads_its_own_tensors_and_each_of_them_once(
    trained: Trained, tmp_path: Path
):
    """Three stages go on from the files of two."""
    plans = [Plan("t", stages(*b), "1f1b-flush", 4, batch=4) for b in ((0, 4, 8), (0, 3, 5, 8))]
    begin = checkpoints(trained(plans[0], model=PLAIN))[1]
    kept = [key for file in Path(begin.path).parent.iterdir() for key in load_file(file)]
    assert len(kept) == len(set(kept)) == 3 * 10  # five layers' weights and biases, with Adam
    trained(plans[1], begin, model=PLAIN, main="tests.integration.runtime.sized")
    for rank, layers in enumerate((range(3), range(3, 5), range(5, 8))):
        read = (tmp_path / f"read-{rank}").read_text().split()
        own = [key for key in kept if int(key.partition("/")[2].partition(".")[0]) in layers]
        assert sorted(read) == sorted(own)


@pytest.mark.parametrize("name", EXACT)
def test_a_flush_schedule_goes_on_bit_for_bit(name: str, trained: Trained, tmp_path: Path):
    whole = trained(EXACT[name])
    end = model(tmp_path)
    kept = checkpoints(whole)
    assert {event.epoch for event in kept} == {0, 1, 2}
    begin = kept[len(kept) // 2]
    rest = trained(EXACT[name], begin)
    expected = {step: value for step, value in losses(whole).items() if step >= begin.step}
    assert losses(rest) == expected
    found = model(tmp_path)
    assert all(torch.equal(found[weight], end[weight]) for weight in end)


@pytest.mark.parametrize(
    ("name", "how"), [("adafactor", "replicas"), ("lion", "chunks"), ("adamw", "sharded")]
)
def test_groups_rates_and_averages_go_on_bit_for_bit(
    name: str, how: str, trained: Trained, tmp_path: Path
):
    """The averaged weights are saved, and those that are trained are others."""
    whole = trained(FLUSHING[how], optimizer=OTHERS[name])
    end = model(tmp_path)
    begin = checkpoints(whole)[3]
    kept = {key for file in files(begin) for key in load_file(file)}
    assert any(key.startswith("ema") for key in kept)
    rest = trained(FLUSHING[how], begin, optimizer=OTHERS[name])
    expected = {step: value for step, value in losses(whole).items() if step >= begin.step}
    assert losses(rest) == expected
    assert all(torch.equal(model(tmp_path)[weight], end[weight]) for weight in end)
    trained(FLUSHING[how], begin, optimizer=replace(OTHERS[name], ema=0.0))
    assert not torch.equal(model(tmp_path)["7.weight"], end["7.weight"])


def test_a_group_without_weights_is_refused_with_the_names_that_there_are(trained: Trained):
    wrong = replace(ADAM, groups=(ParameterGroup("head"),))
    with pytest.raises(AssertionError, match=r"called 'head'.*0\.weight"):
        trained(FLUSHING["chunks"], optimizer=wrong)


def test_the_end_is_kept_too_and_training_goes_on_from_it(trained: Trained, tmp_path: Path):
    plan = FLUSHING["replicas"]
    end = checkpoints(trained(plan))[-1]
    assert (end.epoch, end.samples) == (2, 0)
    last = model(tmp_path)
    tensors = {key: tensor for path in files(end) for key, tensor in load_file(path).items()}
    weights = {key.partition("/")[2]: key for key in tensors if key.startswith("weight/")}
    assert len(weights) > 4
    assert all(torch.equal(tensors[key], last[name]) for name, key in weights.items())
    more = trained(plan, end, epochs=3)
    assert set(losses(more)) == set(range(end.step, end.step * 3 // 2))
    assert checkpoints(more)[-1].epoch == 3


def test_in_float16_the_scale_of_the_loss_goes_on_too(trained: Trained, tmp_path: Path):
    """The loss overflows under its first scale, so the scale has fallen by the checkpoint."""
    plan = Plan("t", stages(0, 4, 8), "1f1b-flush", 4, batch=4)
    steep = MODEL.replace("return nn.functional", "return 64 * nn.functional")
    whole = trained(plan, model=steep, epochs=4, precision="float16")
    end = model(tmp_path)
    begin = checkpoints(whole)[8]
    scale = load_file(begin.path)["scale/value"].item()
    assert scale < FIRST
    rest = trained(plan, begin, model=steep, epochs=4, precision="float16")
    expected = {step: value for step, value in losses(whole).items() if step >= begin.step}
    assert losses(rest) == expected
    found = model(tmp_path)
    assert all(torch.equal(found[weight], end[weight]) for weight in end)


@pytest.mark.parametrize("name", FLUSHING)
@pytest.mark.parametrize("state", ["bfloat16-masters", "bfloat16-masters-state16", "bfloat16"])
def test_state_in_bfloat16_goes_on_bit_for_bit(
    name: str, state: StatePrecision, trained: Trained, tmp_path: Path
):
    """A checkpoint has the masters, from which weights are rounded again."""
    whole = trained(FLUSHING[name], precision="bfloat16", state=state)
    end = model(tmp_path)
    assert end["0.weight"].dtype == torch.bfloat16
    assert end["1.weight"].dtype == torch.float32
    kept = checkpoints(whole)
    begin = kept[len(kept) // 2]
    tensors = {key: tensor for path in files(begin) for key, tensor in load_file(path).items()}
    weight, value = (
        next(tensors[key] for key in tensors if key.startswith(kind) and key.endswith("/0.weight"))
        for kind in ("weight", "mean")
    )
    assert weight.dtype == (torch.float32 if "masters" in state else torch.bfloat16)
    assert value.dtype == (torch.float32 if state == "bfloat16-masters" else torch.bfloat16)
    rest = trained(FLUSHING[name], begin, precision="bfloat16", state=state)
    expected = {step: value for step, value in losses(whole).items() if step >= begin.step}
    assert losses(rest) == expected
    found = model(tmp_path)
    assert all(torch.equal(found[weight], end[weight]) for weight in end)


def test_state_goes_on_in_another_precision_and_partition(trained: Trained, tmp_path: Path):
    """From float32 to bfloat16 with masters, on other stages, and back: losses go on as they were,
    but for bfloat16's digits."""
    plan = Plan("t", stages(0, 4, 8), "1f1b-flush", 4, batch=4)
    whole = trained(plan, model=PLAIN)
    begin = checkpoints(whole)[1]
    other = Plan("t", stages(0, 2, 8, replicas=(1, 2)), "gpipe", 4, batch=4)
    rest = trained(
        other, begin, model=PLAIN, precision="bfloat16", state="bfloat16-masters-state16"
    )
    for step, value in losses(rest).items():
        assert value == pytest.approx(losses(whole)[step], abs=0.03)
    back = trained(plan, checkpoints(rest)[0], model=PLAIN)
    assert model(tmp_path)["0.weight"].dtype == torch.float32
    for step, value in losses(back).items():
        assert value == pytest.approx(losses(whole)[step], abs=0.03)


@pytest.mark.parametrize(
    "plan",
    [FLUSHING["sites"], replace(FLUSHING["gaia"], sites=Sites("gaia", threshold=0.5))],
    ids=["sites", "gaia"],
)
def test_one_site_goes_on_from_the_weights_that_all_have_in_common_and_all_go_on_from_its(
    plan: Plan, trained: Trained, tmp_path: Path
):
    """As from a checkpoint of one pipeline whose weights are the common ones, to the last bit."""
    alone = replace(plan, num_pipelines=1, sites=None)
    begin = checkpoints(trained(plan))[4]
    first = trained(alone, begin)
    end, later = model(tmp_path), checkpoints(first)[1]
    both = losses(trained(plan, later))
    assert min(both) == later.step
    for file in files(begin):
        with safe_open(file, "pt") as opened:
            lane, tensors = opened.metadata(), load_file(file)
        common = {f"weight/{k[10:]}": t for k, t in tensors.items() if k.startswith("reference/")}
        assert any(not torch.equal(tensors[key], weight) for key, weight in common.items())
        file.unlink()
        if lane["lane"] == "0":
            kept = {key: tensor.clone() for key, tensor in (tensors | common).items()}
            save_file(kept, file, lane)
    again = trained(alone, begin)
    assert losses(again) == losses(first)
    assert all(torch.equal(model(tmp_path)[weight], end[weight]) for weight in end)


@pytest.mark.parametrize("name", STASHING)
def test_stashing_goes_on_with_the_pipeline_filled_anew(
    name: str, trained: Trained, tmp_path: Path
):
    """What was in flight is done again with newer weights: less stale than it was, not more."""
    whole = trained(STASHING[name])
    begin = checkpoints(whole)[3]
    rest = trained(STASHING[name], begin)
    before, after = losses(whole), losses(rest)
    assert sorted(after) == [step for step in sorted(before) if step >= begin.step]
    assert max(abs(before[step] - after[step]) for step in after) < 0.1


def test_another_partition_and_schedule_make_the_same_of_it(trained: Trained, tmp_path: Path):
    """A batch is a batch, whoever computes it: two stages, then one process."""
    plan = Plan("t", stages(0, 4, 8), "1f1b-flush", 4, batch=4)
    whole = trained(plan, model=PLAIN)
    end = model(tmp_path)
    begin = checkpoints(whole)[2]
    other = Plan("t", stages(0, 8), "gpipe", 8, batch=2)
    rest = trained(other, begin, model=PLAIN)
    for step, value in losses(rest).items():
        assert value == pytest.approx(losses(whole)[step], abs=1e-4)
    found = model(tmp_path)
    assert all(torch.allclose(found[name], end[name], atol=1e-4) for name in end)


def replicated(replicas: int, sharded: bool) -> Plan:
    partition = stages(0, 8, replicas=(replicas,))
    return Plan("t", partition, "gpipe", 4, 6, shard_state=sharded and replicas > 1)


@pytest.mark.parametrize(
    ("after", "state"),
    [(1, "float32"), (3, "float32"), (2, "bfloat16-masters"), (3, "bfloat16-masters-state16")],
)
def test_sharded_state_goes_on_with_any_number_of_replicas_sharded_or_not(
    after: int, state: StatePrecision, trained: Trained, tmp_path: Path
):
    """Two replicas save, sharded or not; as many as there are then go on the other way round. Both
    end with the same bits."""
    precision = "float32" if state == "float32" else "bfloat16"
    ends = []
    for sharded in (False, True):
        shutil.rmtree(tmp_path / "checkpoints", ignore_errors=True)
        whole = trained(replicated(2, sharded), precision=precision, state=state, model=PLAIN)
        begin = checkpoints(whole)[1]
        assert len(files(begin)) == (2 if sharded else 1)
        plan = replicated(after, not sharded)
        rest = trained(plan, begin, precision=precision, state=state, model=PLAIN)
        ends.append((losses(rest), model(tmp_path)))
    (first, mine), (second, other) = ends
    assert first == second
    assert min(first) == begin.step
    assert all(torch.equal(mine[name], other[name]) for name in mine)


def test_pipelines_with_sharded_replicas_go_on_bit_for_bit(trained: Trained, tmp_path: Path):
    partition = stages(0, 8, replicas=(2,))
    plan = Plan("t", partition, "afp", 4, 2, num_pipelines=2, shard_state=True)
    whole = trained(plan, precision="bfloat16", state="bfloat16-masters")
    end, begin = model(tmp_path), checkpoints(whole)[2]
    assert len(files(begin)) == 4
    rest = trained(plan, begin, precision="bfloat16", state="bfloat16-masters")
    expected = {step: value for step, value in losses(whole).items() if step >= begin.step}
    assert losses(rest) == expected
    found = model(tmp_path)
    assert all(torch.equal(found[weight], end[weight]) for weight in end)


def test_sharded_state_that_lacks_a_file_is_refused(trained: Trained):
    begin = checkpoints(trained(replicated(2, True)))[0]
    files(begin)[1].unlink()
    with pytest.raises(AssertionError, match="the checkpoint has"):
        trained(replicated(2, False), begin)


def test_a_checkpoint_of_another_model_is_refused(trained: Trained, write_job, ended):
    plan = Plan("t", stages(0, 8), "gpipe", 8, batch=2)
    begin = checkpoints(trained(plan))[0]
    path = Path(begin.path)
    tensors = {name: t for name, t in load_file(path).items() if name != "weight/0.weight"}
    save_file(tensors, path, {"lane": "0"})
    with pytest.raises(AssertionError, match=r"has no weight '0\.weight'"):
        trained(plan, begin)
