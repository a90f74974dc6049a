"""Files that are no Python: weights that a training begins with, programs that hide code."""

import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save
from torch import nn

from backend.planning.plan import Partition, Plan, Stage
from backend.runs.request.optimizer_spec import OptimizerSpec
from backend.runs.request.spec import DataSpec, ProfileSpec, TrainSpec
from backend.runs.states import RunState
from tests.integration.sandbox.conftest import failure
from tests.shards import sharded
from workers.data import catalog
from workers.definitions.loader import load
from workers.definitions.prepare import prepare
from workers.sandbox.bubblewrap import rank_user

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
def test_a_training_begins_with_a_folder_of_the_node_and_the_next_with_its_model(lab, tmp_path):
    """The folder is laid out as the hub's cache: its files are links to others beside it."""
    lab = lab(max_seconds=PATIENCE, data=str(tmp_path / "hub"))
    definition, count, given = mlp_weights(lab)
    stored = sharded(tmp_path / "hub" / "blobs", given)
    (tmp_path / "hub" / "base").mkdir()
    for file in stored.iterdir():
        (tmp_path / "hub" / "base" / file.name).symlink_to(Path("..") / "blobs" / file.name)
    spec = TrainSpec(definition, plan(count), None, DataSpec("digits"), STILL, epochs=1)
    first = lab.carries(replace(spec, weights_path="base"))
    assert first.state is RunState.SUCCEEDED, first.error
    again = lab.carries(replace(spec, weights_run=first.id))
    assert again.state is RunState.SUCCEEDED, again.error
    for run in (first, again):
        ended = load_file(artifact(lab, run.id, "model.safetensors"))
        assert all(torch.equal(ended[name], given[name]) for name in given)


SMALL = b"""
from workers.runtime.checkpoints import trained_model
trained_model.SHARD = 100_000
"""


@pytest.mark.slow
def test_a_model_in_shards_is_the_next_run_s_beginning_where_it_lies(lab):
    """The ranks are another user and see none of the node's files but those: nothing is copied.
    Files of before could be read by their owner alone."""
    lab = lab(max_seconds=PATIENCE)
    definition, count, _ = mlp_weights(lab)
    source = SMALL + lab.backend.definitions.source(definition)
    mine = lab.backend.definitions.add("mlp.py", source).id
    spec = TrainSpec(mine, plan(count), None, DataSpec("digits"), STILL, epochs=1)
    first = lab.carries(spec)
    assert first.state is RunState.SUCCEEDED, first.error
    files = lab.backend.runs.artifacts.trained_model(first.id)
    assert len(files) > 3
    for file in files:
        file.path.chmod(0o600)
    again = lab.carries(replace(spec, weights_run=first.id, seed=spec.seed + 1))
    assert again.state is RunState.SUCCEEDED, again.error
    before, after = (shards(lab, run.id) for run in (first, again))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    folder = lab.settings.run_folder(again.id, 1) / "definition" / f"run-{first.id}"
    assert [link.is_symlink() for link in folder.iterdir()] == [True] * len(files)
    files[1].path.unlink()
    kind, message = failure(lab.carries(replace(spec, weights_run=first.id)))
    assert kind == "NotFound"
    assert f"{files[1].name} of the trained model of run {first.id} is not on" in message


def shards(lab, run_id: int) -> dict[str, torch.Tensor]:
    """Every weight of a model in shards."""
    files = lab.backend.runs.artifacts.trained_model(run_id)
    parts = [load_file(file.path) for file in files if not file.name.endswith(".json")]
    return {name: tensor for part in parts for name, tensor in part.items()}


@pytest.mark.slow
def test_weights_that_the_operator_has_not_opened_are_refused(lab, tmp_path):
    lab = lab(data=str(tmp_path / "hub"))
    definition, count, given = mlp_weights(lab)
    sharded(tmp_path / "secret", given)
    spec = TrainSpec(definition, plan(count), epochs=1, weights_path="../secret")
    assert failure(lab.carries(spec))[0] == "DataNotAllowed"


@pytest.mark.slow
def test_weights_that_only_their_owner_may_read_are_told_of(lab, tmp_path):
    lab = lab(data=str(tmp_path))
    definition, count, given = mlp_weights(lab)
    (tmp_path / "mine.safetensors").write_bytes(save(given))
    (tmp_path / "mine.safetensors").chmod(0o600)
    spec = TrainSpec(definition, plan(count), epochs=1, weights_path="mine.safetensors")
    if rank_user() is None:
        pytest.skip("an agent that is not root has ranks of its own user")
    assert failure(lab.carries(spec)) == (
        "DefinitionFailed",
        "mine.safetensors cannot be read by the ranks, which run as a user of their own",
    )


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
    return Path(lab.backend.runs.artifacts.path(run_id, name))


LOOK = """
import os
from pathlib import Path
print("CODE RAN {way}", os.environ.get("STAGEFLOW_REDIS_URL"), flush=True)
for path in ("/etc/shadow", "/marker"):
    try:
        print("WROTE", Path(path).write_text("x"), flush=True)
    except OSError as fault:
        print("REFUSED", type(fault).__name__, flush=True)
"""
WAYS = ("sample inputs", "pickled weights", "an expression", "a guard")
"""The ways in which `torch.export.load`, or a call of what it gives, runs code of the file's."""


class Attack:
    """Runs when it is unpickled, and is then what `becomes` says."""

    def __init__(self, way: str, becomes: str) -> None:
        self.code = f"({hidden(way)}, {becomes})[1]"

    def __reduce__(self):
        return eval, (self.code,)


def hidden(way: str) -> str:
    """An expression that runs `LOOK`: all of it in one text, which sympy leaves alone, without
    another quotation mark, which guards could not hold."""
    return f"exec('exec(bytes({[*LOOK.format(way=way).encode()]}).decode())')"


def pickled(value: object) -> bytes:
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


def evil(name: str, data: bytes) -> bytes:
    """An entry of a program with what is hidden in it."""
    sample, weights, expression, guard = WAYS
    if "sample_inputs" in name:
        return pickled(((Attack(sample, "0"),), {}))
    if name.endswith("weights/weight_1"):
        torch_ = "__import__('torch')"
        return pickled(Attack(weights, f"{torch_}.nn.Parameter({torch_}.zeros(3))"))
    if name.endswith("weights_config.json"):
        page = json.loads(data)
        page["config"]["0.bias"] |= {"use_pickle": True, "tensor_meta": None}
        return json.dumps(page).encode()
    if name.endswith("models/model.json"):
        page = json.loads(data)
        size = page["graph_module"]["graph"]["tensor_values"]["input"]["sizes"][0]["as_expr"]
        size["expr_str"] = f"[{hidden(expression)}, {size['expr_str']}][1]"
        page["guards_code"] = [f"[{hidden(guard)}, True][1]"]
        return json.dumps(page).encode()
    return data


def evil_program() -> bytes:
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(program())) as source, zipfile.ZipFile(changed, "w") as made:
        for name in source.namelist():
            made.writestr(name, evil(name, source.read(name)))
    return changed.getvalue()


@pytest.mark.slow
def test_a_program_that_runs_code_at_load_runs_it_in_the_sandbox(lab, monkeypatch):
    """Nothing stops `torch.export.load` from running it; where it runs, there is nothing. The
    guard is compiled where the program is called as it was saved, which we never do."""
    lab = lab(max_seconds=PATIENCE)
    monkeypatch.setenv("STAGEFLOW_REDIS_URL", "redis://secret")
    kept = lab.backend.definitions.add("evil.pt2", evil_program())
    assert lab.backend.definitions.describe(kept.id).form == "program"
    run = lab.carries(ProfileSpec(kept.id, 2, 1))
    text = lab.text(run)
    ran = [way for way in WAYS if f"CODE RAN {way}" in text]
    assert set(ran) >= set(WAYS[:3])
    assert all(f"CODE RAN {way} None" in text for way in ran)
    assert text.count("REFUSED") == 2 * text.count("CODE RAN")
    assert "WROTE" not in text
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
        torch.export.export(
            nn.Sequential(nn.Linear(4, 3)),
            (torch.rand(2, 4),),
            dynamic_shapes=({0: torch.export.Dim.DYNAMIC},),
        ),
        file,
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
