"""Weights in shards: every partition begins with the same, and trains to the same."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from tests.integration.runtime.test_shapes import MODEL, RUNTIME
from tests.shards import sharded
from workers.definitions.loader import load
from workers.definitions.prepare import prepare
from workers.definitions.weight_files import INDEX


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
        codes, events, text = ended(RUNTIME, job, size=len(bounds) - 1)
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


def test_from_pretrained_opens_what_a_config_s_model_has_become(
    write_job, train_spec, ended, tmp_path: Path
) -> None:
    """The stages' files are its shards; the output layer is tied to the first stage's words."""
    sizes = {"n_embd": 16, "n_layer": 3, "n_head": 2, "vocab_size": 50, "n_positions": 32}
    config = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], **sizes}
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "config.json").write_text(json.dumps(config))
    given = load(tmp_path / "given" / "config.json", {"length": 8})
    count = len(prepare(given, given.example(2)).layers)
    spec = train_spec(
        0, 2, count, schedule="1f1b-flush", batch=2, epochs=1, parameters={"length": 8}
    )
    job = write_job("mlp", spec)
    fields = json.loads(job.read_bytes()) | {"definition": str(given.file)}
    job.write_text(json.dumps(fields))
    codes, events, text = ended(RUNTIME, job, size=2)
    assert codes == [0, 0], text
    assert {"config.json", INDEX} <= {getattr(event, "name", "") for event in events}
    joined = load_file(tmp_path / "model.safetensors")
    (tmp_path / "model.safetensors").unlink()
    model, told = AutoModelForCausalLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(told.values()), told
    assert not [n for n, t in model.state_dict().items() if not torch.equal(t, joined[n])]


def test_what_no_stage_reads_has_a_shard_of_its_own(run, tmp_path: Path) -> None:
    saved, *_ = run(0, 10, 17)
    whole, places = load_file(saved), json.loads((tmp_path / INDEX).read_text())["weight_map"]
    assert places.keys() == whole.keys()
    assert places["unread.weight"] == "unread.safetensors"
    stored = stored_in_shards(tmp_path, places)
    assert not [name for name in whole if not torch.equal(stored[name], whole[name])]


def stored_in_shards(folder: Path, places: dict[str, str]) -> dict[str, torch.Tensor]:
    files = {file: load_file(folder / file) for file in set(places.values())}
    return {name: files[file][name] for name, file in places.items()}


def test_a_truncated_shard_ends_every_rank_before_training(run, folder: Path) -> None:
    shard = folder / "model-00002-of-00002.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1])
    saved, losses, codes, text = run(0, 10, 17)
    assert 0 not in codes
    assert not losses
    assert not saved.exists()
    assert f"{shard.name} cannot be read as safetensors" in text
    assert "Traceback" not in text
