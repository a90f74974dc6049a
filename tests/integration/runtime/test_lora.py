"""Low-rank adapters on a frozen GPT-2 of transformers, from its profile to its trained model."""

import json
import os
from collections import Counter
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel

from backend.cluster.cluster import Cluster, Level
from backend.pipeline.actions import Flow, Send
from backend.pipeline.columns import decode
from backend.pipeline.timeline import Timeline
from backend.prediction.predict import predict, predicted_program
from backend.profiles.profile import Profile
from backend.runs.events import read_line
from backend.runs.request.spec import ProfileSpec, TrainSpec
from tests.forked import Forked
from tests.integration.runtime import forked_ranks
from tests.integration.runtime.conftest import job_file, spec_of
from workers.profiler.main import profiled
from workers.runtime.reports.reporter import Reporter

SIZES = {"n_embd": 16, "n_layer": 3, "n_head": 2, "vocab_size": 50, "n_positions": 16}
SIZES |= {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "use_cache": False}
SIZES |= {"bos_token_id": 0, "eos_token_id": 0}
MODEL = f"""
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.pytorch_utils import Conv1D

class Adapted(Conv1D):
    \"\"\"A layer of the base, under the base's own names, beside a product that learns.\"\"\"

    def __init__(self, base, rank):
        super().__init__(base.nf, base.nx)
        self.requires_grad_(False)
        self.down, self.up = nn.Linear(base.nx, rank, False), nn.Linear(rank, base.nf, False)

    def forward(self, x):
        return super().forward(x) + self.up(self.down(x))

class Model(GPT2LMHeadModel):
    def forward(self, tokens):
        return super().forward(input_ids=tokens).logits

def model():
    found = Model(GPT2Config(**{SIZES!r}))
    found.requires_grad_(False)
    for block in found.transformer.h[1:]:
        block.attn.c_attn = Adapted(block.attn.c_attn, 2)
        block.mlp.c_fc = Adapted(block.mlp.c_fc, 2)
    return found

def example(n):
    tokens = torch.randint(50, (n, 9))
    return tokens[:, :-1], tokens[:, 1:]

def loss(output, targets):
    return nn.functional.cross_entropy(output.flatten(0, 1), targets.flatten())
"""
pytestmark = pytest.mark.timeout(600)
BOUNDS = {1: (0, 58), 2: (0, 18, 58), 4: (0, 10, 18, 36, 58)}
"""The first block, which has no adapters, ends before layer 18."""
ADAPTERS = (".down.", ".up.")


RUNS = [(1, "1f1b-flush"), (2, "1f1b-flush"), (4, "1f1b-flush"), (4, "pipedream"), (4, "2bw")]
"""The stages and the schedule of each training."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The base as transformers saves it."""
    torch.manual_seed(5)
    folder = tmp_path_factory.mktemp("base")
    GPT2LMHeadModel(GPT2Config(**SIZES)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def trained(base: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, str], Path]:
    """The folder of each training, which begins with the base: each is done once, and all ranks
    have one import of transformers, which takes as long as all else that a rank does."""
    folders = {run: tmp_path_factory.mktemp("run") for run in RUNS}
    for run, folder in folders.items():
        file = job_file(folder, MODEL, spec(*run))
        file.write_text(json.dumps(json.loads(file.read_bytes()) | {"weights": str(base)}))
    jobs = [str(folder / "job.json") for folder in folders.values()]
    module = "transformers.models.gpt2.modeling_gpt2"
    Forked(forked_ranks.__name__, module, *jobs, env=dict(os.environ)).wait(500)
    return folders


def spec(stages: int, schedule: str) -> TrainSpec:
    return spec_of(
        *BOUNDS[stages],
        schedule=schedule,
        batch=4,
        rate=0.5,
        tracing="captured",
        epochs=1,
        samples=256,
        weights_partial=True,
    )


@pytest.fixture
def run(trained: dict[tuple[int, str], Path]):
    """The plan, losses, spans and folder of a training."""

    def found(stages: int, schedule: str = "1f1b-flush"):
        folder = trained[stages, schedule]
        text = "".join((folder / f"said-{rank}").read_text() for rank in range(stages))
        assert (folder / "codes").read_text().split() == ["0"] * stages, text
        assert "lacks transformer.h.1.attn.c_attn.down.weight" in text
        events = [event for line in text.splitlines() if (event := read_line(line))]
        losses = [p for e in events if getattr(e, "name", "") == "loss" for p in e.values]
        spans = [decode(file.read_bytes()) for file in folder.glob("spans-*")]
        return spec(stages, schedule).plan, losses, Timeline.joined(spans), folder

    return found


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    file = tmp_path_factory.mktemp("profile") / "definition.py"
    file.write_text("import torch\nfrom torch import nn\n" + MODEL)
    return profiled("lora", file, ProfileSpec(1, 16, 1), Reporter(0))


def sent(rows) -> Counter:
    """Every message and between which stages it went, how often."""
    return Counter((a.message, a.to) for a in rows.actions() if isinstance(a, Send))


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["1f1b-flush", "pipedream", "2bw"])
def test_what_was_sent_is_what_was_predicted(run, profile: Profile, schedule: str) -> None:
    plan, _, timeline, _ = run(4, schedule)
    cluster = Cluster((Level(4, 1e9),))
    program, _ = predicted_program(profile, cluster, plan, 16)
    assert sent(timeline.rows) == sent(program.rows)
    gradients = {a.message.stage for a in timeline.rows.actions() if is_gradient(a)}
    assert gradients == {3}  # the third stage has the first adapters and sends none on


def is_gradient(action) -> bool:
    return isinstance(action, Send) and action.message.flow is Flow.GRADIENT


def test_memory_holds_the_base_once(profile: Profile) -> None:
    """The stages up to the first adapters hold their weights, and bundles: nothing for a
    backward; a gradient and the optimizer's state are those of the adapters alone."""
    plan = spec_of(*BOUNDS[4], schedule="pipedream", batch=4).plan
    held = predict(profile, Cluster((Level(4, 1e9),)), plan, "adam").memory_bytes
    cuts = profile.graph.cut_bytes
    for first, stop, in_flight, expected in ((0, 10, 4, held[0]), (10, 18, 3, held[1])):
        constants = sum(layer.constant_bytes for layer in profile.layers[first:stop])
        into, out = (cuts[first - 1] if first else 0), cuts[stop - 1]
        bundles = in_flight * out + 2 * (into + out)
        work = most_at_work(profile.layers[first:stop])
        assert expected == constants + bundles + work + profile.process_bytes
    third = profile.layers[18:36]
    trained = sum(layer.parameter_bytes for layer in third)
    kept = sum(layer.saved_bytes for layer in third)
    constants = sum(layer.constant_bytes for layer in third)
    into, out = cuts[17], cuts[35]
    versions, gradient, state, in_flight = 2, 1, 2, 2
    waiting = in_flight * (kept + into) + 2 * (into + out) + most_at_work(third)
    once = constants + profile.process_bytes
    assert held[2] == trained * (versions + gradient + state) + once + waiting


def most_at_work(layers) -> int:
    """Of the layers, each of which was measured."""
    return max(layer.work_bytes for layer in layers)


def test_one_two_and_four_ranks_train_the_adapters_alone(run, base: Path) -> None:
    first = load_file(base / "model.safetensors")
    _, alone, _, folder = run(1)
    whole = load_file(folder / "model.safetensors")
    for stages in (2, 4):
        _, losses, _, folder = run(stages)
        saved = load_file(folder / "model.safetensors")
        assert losses == pytest.approx(alone, rel=1e-5)
        assert saved.keys() == whole.keys()
        adapters = {name for name in saved if any(part in name for part in ADAPTERS)}
        assert len(adapters) == 2 * 2 * 2
        assert all(torch.allclose(saved[n], whole[n], atol=1e-6) for n in adapters)
        frozen = saved.keys() - adapters - {"lm_head.weight"}
        assert frozen == first.keys()
        assert not [name for name in frozen if not torch.equal(saved[name], first[name])]
    (folder / "config.json").write_text((base / "config.json").read_text())
    opened, told = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert not told["missing_keys"]
    assert set(told["unexpected_keys"]) == adapters
    assert torch.equal(opened.lm_head.weight, first["transformer.wte.weight"])
