"""Ranks that trace on shapes and make their own stages train as those that run the model."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from workers.definitions.blueprint.recording import LARGE
from workers.definitions.loader import load

RUNTIME = "workers.runtime.main"
MODEL = """
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner, self.norm = nn.Linear(width, width), nn.BatchNorm1d(width)
        self.dropout = nn.Dropout(0.1)
        nn.init.orthogonal_(self.inner.weight)

    def forward(self, x):
        return x + self.dropout(self.norm(torch.relu(self.inner(x))))

class Model(nn.Module):
    def __init__(self, width=300):
        super().__init__()
        self.first, self.last = nn.Linear(20, width), nn.Linear(width, 300)
        self.blocks = nn.ModuleList(Block(width) for _ in range(3))
        self.unread = nn.Linear(width, width)

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.last(x)

def model():
    return Model()

def example(n):
    return torch.rand(n, 20), torch.arange(n) % 300
"""


@pytest.fixture
def trained(write_job, train_spec, ended, tmp_path: Path):
    """The saved model of a run on two ranks, and all that was printed."""

    def run(tracing: str, weights: str = "", **more) -> tuple[dict[str, Tensor], str]:
        spec = train_spec(0, 10, 17, tracing=tracing, epochs=1, **more)
        job = write_job(MODEL, spec)
        fields = json.loads(job.read_bytes()) | {"weights": weights}
        job.write_text(json.dumps(fields))
        codes, _, text = ended(job, size=2)
        assert codes == [0, 0] or weights, text
        saved = job.parent / "model.safetensors"
        return (load_file(saved) if saved.exists() else {}), text

    return run


def test_the_trained_model_is_the_same_to_the_last_bit(trained) -> None:
    running, _ = trained("")
    shapes, _ = trained("symbolic")
    assert max(tensor.numel() for tensor in running.values()) >= LARGE
    assert running.keys() == shapes.keys()
    assert not [name for name in running if not torch.equal(running[name], shapes[name])]


def test_a_file_of_weights_is_read_by_each_rank_alone(trained, tmp_path: Path) -> None:
    file = tmp_path / "w.safetensors"
    (tmp_path / "mine.py").write_text("import torch\nfrom torch import nn\n" + MODEL)
    given = {n: t.clone() for n, t in load(tmp_path / "mine.py").model(99).state_dict().items()}
    save_file(given, file)
    running, _ = trained("", str(file), rate=0.0)
    shapes, _ = trained("symbolic", str(file), rate=0.0)
    assert not [name for name in running if not torch.equal(running[name], shapes[name])]
    assert torch.equal(shapes["last.weight"], given["last.weight"])


def test_weights_of_another_shape_are_refused_before_training(trained, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import torch\nfrom torch import nn\n" + MODEL)
    given = {n: t.clone() for n, t in load(tmp_path / "mine.py").model(1).state_dict().items()}
    save_file(given | {"last.weight": torch.zeros(2, 3)}, tmp_path / "w.safetensors")
    saved, text = trained("symbolic", str(tmp_path / "w.safetensors"))
    assert not saved
    assert "w.safetensors has other sizes of last.weight" in text
    assert "Traceback" not in text
