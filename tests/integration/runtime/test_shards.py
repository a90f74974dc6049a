"""Weights in shards: every partition begins with the same, and trains to the same."""

import json
import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from backend.runs.events import Artifact
from tests.integration.runtime.test_shapes import MODEL
from tests.shards import sharded
from workers.definitions.loader import load
from workers.definitions.prepare import prepare
from workers.definitions.weight_files import INDEX

SIZED = "tests.integration.runtime.sized"
SHARD = 400_000
"""Bytes: a block of the model's has 361,200, of which its weight has 360,000."""
LAST_STAGE = ("blocks.2", "last")
BIG = 40_007 * 1000 * 4
"""Bytes of a weight that no piece divides evenly."""
LOPSIDED = f"""
def model():
    big = nn.Linear(1000, {BIG // 4000}).requires_grad_(False)
    nn.init.constant_(big.weight, 0.5)
    return nn.Sequential(nn.Linear(4, 1000), big)

def example(n):
    return torch.rand(n, 4), torch.arange(n) % 3
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two shards of a model whose largest tensors are of the size that ranks make by stages."""
    (tmp_path / "given.py").write_text("import torch\nfrom torch import nn\n" + MODEL)
    model = load(tmp_path / "given.py").model(99)
    return sharded(tmp_path / "base", {n: t.clone() for n, t in model.state_dict().items()})


@pytest.fixture
def run(write_job, train_spec, ended, tmp_path: Path, folder: Path):
    """What a training on some ranks saves, its losses, its exit codes and all its text."""

    def trained(*bounds: int):
        spec = train_spec(
            *bounds, schedule="1f1b-flush", batch=2, tracing="symbolic", epochs=1, samples=128
        )
        job = write_job(MODEL.replace("Dropout(0.1)", "Identity()"), spec)
        job.write_text(json.dumps(json.loads(job.read_bytes()) | {"weights": str(folder)}))
        codes, events, text = ended(job, len(bounds) - 1)
        losses = [p for e in events if getattr(e, "name", "") == "loss" for p in e.values]
        return tmp_path / "model.safetensors", losses, codes, text

    return trained


def test_one_two_and_four_ranks_train_alike_from_shards(run) -> None:
    _, alone, codes, text = run(0, 17)
    assert codes == [0], text
    assert len(alone) > 2
    for bounds in ((0, 10, 17), (0, 4, 8, 12, 17)):
        saved, losses, codes, text = run(*bounds)
        assert set(codes) == {0}, text
        assert losses == pytest.approx(alone, rel=1e-5)
        assert all(torch.isfinite(t.float()).all() for t in load_file(saved).values())


@pytest.fixture
def saved_as(ended, write_job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Train so and save in files of at most so many bytes: the tensors by name with the file of
    each, the files that were reported by rank, and all text."""

    def trained(model: str, spec, shard: int, block: int = 2**22, **fields):
        monkeypatch.setenv("SHARD", str(shard))
        monkeypatch.setenv("BLOCK", str(block))
        for old in tmp_path.glob("model*"):
            old.unlink()
        job = write_job(model, spec)
        job.write_text(json.dumps(json.loads(job.read_bytes()) | fields))
        codes, events, text = ended(job, size=spec.plan.partition.num_devices, module=SIZED)
        assert set(codes) == {0}, text
        reported = {event.name for event in events if isinstance(event, Artifact)}
        assert reported == {file.name for file in tmp_path.glob("*") if file.name in reported}
        weights = sorted(name for name in reported if name.endswith(".safetensors"))
        stored = {name: load_file(tmp_path / name) for name in weights}
        found = {n: (tensor, file) for file in weights for n, tensor in stored[file].items()}
        assert len(found) == sum(map(len, stored.values())), "a tensor is in two files"
        return found, reported, text

    return trained


def test_one_file_and_bounded_shards_of_a_stage_each_hold_the_same(
    saved_as, train_spec, tmp_path: Path
) -> None:
    """What a rank sends for the one file comes in pieces that divide no tensor evenly."""
    spec = train_spec(0, 10, 17, schedule="1f1b-flush", epochs=1, samples=64)
    whole, reported, _ = saved_as(MODEL, spec, 10**9, block=1000)
    assert reported == {"model.safetensors"}
    found, reported, _ = saved_as(MODEL, spec, SHARD)
    assert found.keys() == whole.keys() >= {"unread.weight", "blocks.2.norm.running_mean"}
    assert not [n for n, (tensor, _) in whole.items() if not torch.equal(tensor, found[n][0])]
    files = sorted(reported - {INDEX})
    last = len(files)
    assert last > 3
    assert files == [f"model-{n:05}-of-{last:05}.safetensors" for n in range(1, last + 1)]
    index = json.loads((tmp_path / INDEX).read_text())
    assert index["weight_map"] == {name: file for name, (_, file) in found.items()}
    assert index["metadata"]["total_size"] == sum(t.nbytes for t, _ in found.values())
    for file in files:
        own = {name: tensor for name, (tensor, place) in found.items() if place == file}
        assert len(own) == 1 or sum(tensor.nbytes for tensor in own.values()) <= SHARD
        assert len({name.startswith(LAST_STAGE) for name in own}) == 1
    assert not (tmp_path / "model.safetensors").exists()


@pytest.mark.parametrize("shard", [10**9, 2000])
def test_from_pretrained_opens_what_a_config_s_model_has_become(
    saved_as, train_spec, tmp_path: Path, shard: int
) -> None:
    """In one file or in shards; the output layer is tied to the first stage's words."""
    sizes = {"n_embd": 16, "n_layer": 3, "n_head": 2, "vocab_size": 50, "n_positions": 32}
    config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], **sizes}
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "config.json").write_text(json.dumps(config))
    given = load(tmp_path / "given" / "config.json", {"length": 8})
    count = len(prepare(given, given.example(2)).layers)
    spec = train_spec(
        0, 2, count, schedule="1f1b-flush", batch=2, epochs=1, parameters={"length": 8}
    )
    found, reported, _ = saved_as("mlp", spec, shard, definition=str(given.file))
    assert "config.json" in reported
    assert (INDEX in reported) == (shard == 2000)
    model, told = AutoModelForCausalLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(told.values()), told
    state = model.state_dict()
    assert state.keys() == found.keys()
    assert not [n for n, t in state.items() if not torch.equal(t, found[n][0])]


def test_the_next_training_begins_with_the_shards_of_the_last(
    saved_as, train_spec, tmp_path: Path
) -> None:
    """Three ranks go on from what two have saved; nothing is learned, so they save the same."""
    spec = train_spec(0, 10, 17, schedule="1f1b-flush", epochs=1, samples=64)
    first, _, _ = saved_as(MODEL, spec, SHARD)
    base = tmp_path / "base"
    base.mkdir()
    for file in tmp_path.glob("model*"):
        (base / file.name).write_bytes(file.read_bytes())
    still = train_spec(0, 4, 10, 17, schedule="1f1b-flush", epochs=1, samples=64, rate=1e-30)
    again, _, _ = saved_as(MODEL, still, SHARD, weights=str(base))
    assert again.keys() == first.keys()
    learned = [name for name in first if "running" not in name and "batches" not in name]
    assert len(learned) > 10
    assert not [name for name in learned if not torch.equal(first[name][0], again[name][0])]


@pytest.mark.parametrize("shard", [10**10, 10**6])
def test_a_rank_that_saves_holds_no_more_than_its_own_stages(
    saved_as, train_spec, monkeypatch: pytest.MonkeyPatch, shard: int
) -> None:
    """On two hosts: the second stage's weights pass through rank 0, or do not, in pieces."""
    monkeypatch.setenv("GROUP_WORLD_SIZE", "2")
    spec = train_spec(0, 1, 2, schedule="gpipe", tracing="symbolic", epochs=1, samples=16)
    found, _, text = saved_as(LOPSIDED, spec, shard)
    assert found["1.weight"][0].nbytes == BIG
    assert found["1.weight"][0].min() == 0.5
    grown = {int(r): int(n) for r, n in re.findall(r"rank (\d) grew by (\d+) bytes", text)}
    assert grown.keys() == {0, 1}
    assert max(grown.values()) < BIG / 4, grown


def test_a_truncated_shard_ends_every_rank_before_training(run, folder: Path) -> None:
    shard = folder / "model-00002-of-00002.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1])
    saved, losses, codes, text = run(0, 10, 17)
    assert 0 not in codes
    assert not losses
    assert not saved.exists()
    assert f"{shard.name} cannot be read as safetensors" in text
    assert "Traceback" not in text
