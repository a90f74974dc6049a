"""Files that are no Python: weights that a training begins with, programs that hide code."""

import io
import json
import zipfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save
from torch import nn

from backend.planning.plan import Partition, Plan, Stage
from backend.runs.spec import DataSpec, OptimizerSpec, ProfileSpec, TrainSpec
from backend.runs.states import RunState
from tests.integration.sandbox.conftest import failure
from workers.data import catalog
from workers.definitions.loader import load
from workers.definitions.prepare import prepare

CUT = 3
PATIENCE = 900.0
STILL = OptimizerSpec("sgd", learning_rate=1e-30)


def plan(num_layers: int) -> Plan:
    stages = (Stage(0, CUT, (0,)), Stage(CUT, num_layers, (1,)))
    return Plan("even", Partition(stages), "1f1b-flush", 8, batch=2)


def mlp_weights(lab, seed: int = 7) -> tuple[int, int, dict[str, torch.Tensor]]:
    """(definition, layers, random weights under the model's own names)."""
    definition = lab.backend.definitions.add_zoo("mlp")
    file = lab.settings.home / "mlp.py"
    file.write_bytes(lab.backend.definitions.source(definition.id))
    loaded = load(file)
    count = len(prepare(loaded, catalog.example(loaded, 2)).layers)
    return definition.id, count, dict(loaded.model(seed).state_dict())


@pytest.mark.slow
def test_a_training_begins_with_the_uploaded_weights(lab):
    lab = lab(max_seconds=PATIENCE)
    definition, count, given = mlp_weights(lab)
    kept = lab.backend.definitions.add("given.safetensors", save(given))
    spec = TrainSpec(
        definition,
        plan(count),
        data=DataSpec("digits"),
        optimizer=STILL,
        epochs=1,
        weights_id=kept.id,
    )
    run = lab.carries(spec)
    assert run.state is RunState.SUCCEEDED, run.error
    ended = load_file(artifact(lab, run.id, "model.safetensors"))
    assert ended.keys() == given.keys()
    assert all(torch.equal(ended[name], given[name]) for name in given)
    drawn = mlp_weights(lab, seed=0)[2]
    assert any(not torch.equal(drawn[name], given[name]) for name in given)


@pytest.mark.slow
def test_weights_of_another_model_are_refused_with_their_names(lab):
    lab = lab(max_seconds=PATIENCE)
    definition, count, given = mlp_weights(lab)
    given["surplus"] = torch.zeros(2)
    kept = lab.backend.definitions.add("given.safetensors", save(given))
    kind, message = failure(
        lab.carries(TrainSpec(definition, plan(count), epochs=1, weights_id=kept.id))
    )
    assert kind == "DefinitionFailed"
    assert "has unknown surplus" in message


def artifact(lab, run_id: int, name: str) -> Path:
    return Path(lab.backend.runs.artifact_path(run_id, name))


class Attack:
    """Runs when it is unpickled."""

    def __reduce__(self):
        code = """
import os
from pathlib import Path
print("CODE RAN", os.environ.get("STAGEFLOW_REDIS_URL"), flush=True)
for path in ("/etc/shadow", "/marker"):
    try:
        print("WROTE", Path(path).write_text("x"), flush=True)
    except OSError as fault:
        print("REFUSED", type(fault).__name__, flush=True)
"""
        return exec, (code,)


def program_with(attack: object) -> bytes:
    """A program of torch.export whose sample inputs are a pickle of our own."""
    whole, hidden, changed = io.BytesIO(program()), io.BytesIO(), io.BytesIO()
    torch.save(((attack,), {}), hidden)
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(changed, "w") as made:
        for name in source.namelist():
            made.writestr(name, hidden.getvalue() if "sample_inputs" in name else source.read(name))
    return changed.getvalue()


@pytest.mark.slow
def test_a_program_that_runs_code_at_load_runs_it_in_the_sandbox(lab, monkeypatch):
    """Nothing stops `torch.export.load` from running it; where it runs, there is nothing."""
    lab = lab(max_seconds=PATIENCE)
    monkeypatch.setenv("STAGEFLOW_REDIS_URL", "redis://secret")
    kept = lab.backend.definitions.add("evil.pt2", program_with(Attack()))
    assert lab.backend.definitions.describe(kept.id).form == "program"
    run = lab.carries(ProfileSpec(kept.id, 2, 1))
    text = lab.text(run)
    assert "CODE RAN None" in text
    assert "WROTE" not in text
    assert text.count("REFUSED") == 2
    assert not Path("/marker").exists()


FACTORY = b"""
import torch
from torch import nn
def model(width=8): return nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, 3))
def example(batch): return torch.rand(batch, 4), torch.randint(3, (batch,))
"""
CONFIG = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 50}
CONFIG |= {"n_layer": 2, "n_embd": 16, "n_head": 2, "n_positions": 16}


def program() -> bytes:
    file = io.BytesIO()
    torch.export.save(
        torch.export.export(nn.Sequential(nn.Linear(4, 3)), (torch.rand(2, 4),)), file
    )
    return file.getvalue()


FORMS = {
    "net.py": (lambda: FACTORY, {"width": 6}, ["0", "1", "2"]),
    "config.json": (lambda: json.dumps(CONFIG).encode(), {"length": 8}, ["transformer.h.0"]),
    "net.pt2": (program, {}, ["0"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
def test_every_form_is_profiled_in_the_sandbox(lab, name: str):
    lab = lab(max_seconds=PATIENCE)
    make, parameters, layers = FORMS[name]
    kept = lab.backend.definitions.add(name, make())
    run = lab.carries(ProfileSpec(kept.id, 2, 1, parameters))
    assert run.state is RunState.SUCCEEDED, run.error
    assert run.summary.profile_id is not None
    found = lab.backend.profiles.get(run.summary.profile_id).profile
    assert set(layers) <= {layer.name for layer in found.layers}
    assert found.parameters == parameters
