"""Microbatches of changing shapes, and float16 with its scale, beside plain training."""

from dataclasses import replace
from pathlib import Path

import pytest
from safetensors.torch import load_file

from backend.runs.events import Metrics, Spans
from backend.runs.request.spec import DataSpec
from tests.integration.runtime.plain import distance, plain

pytestmark = pytest.mark.slow
TEXT = """
class Mean(nn.Module):
    def forward(self, x): return x + x.mean(1, keepdim=True)

def model():
    return nn.Sequential(nn.Embedding(256, 6), nn.Linear(6, 8), Mean(), nn.Linear(8, 256))
def example(n): return torch.randint(256, (n, 9)), torch.randint(256, (n, 9))
"""
LINES = "a bc\ndefgh ijkl\nmno pq\nrst\nuvwxyz abc\ndef\ngh ij\nklm nop qrs\n"
DIGITS = """
def model():
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(),
        nn.Linear(144, 32), nn.ReLU(), nn.Linear(32, 10))
def example(n): return torch.rand(n, 1, 8, 8), torch.randint(10, (n,))
def loss(output, target): return 1000 * nn.functional.cross_entropy(output, target)
"""


def losses(found) -> list[float]:
    told = [event for event in found if isinstance(event, Metrics) and event.name == "loss"]
    return [value for event in told for value in event.values]


@pytest.mark.parametrize("bounds", [(0, 2, 5), (0, 5)])
def test_lines_of_text_in_buckets_learn_as_in_one_process(
    write_job, train_spec, ended, tmp_path: Path, bounds: tuple[int, ...]
) -> None:
    (tmp_path / "lines.txt").write_text(LINES * 5)
    data = DataSpec("text", path="lines.txt", length=0, buckets=(4, 8, 12), last="keep")
    spec = train_spec(*bounds, schedule="1f1b-flush", microbatch=4, batch=2, epochs=2, data=data)
    place = str(tmp_path / "lines.txt")
    codes, found, text = ended(write_job(TEXT, spec, data=place), len(bounds) - 1)
    assert set(codes) == {0}, text
    expected = plain(tmp_path / "mine.py", spec, place)
    assert losses(found) == pytest.approx(expected.losses, rel=1e-5)
    assert distance(load_file(tmp_path / "model.safetensors"), expected.weights) < 1e-5
    loaded = {e.rank for e in found if isinstance(e, Spans) and e.kind == "loading"}
    assert loaded == {0, len(bounds) - 2}


@pytest.mark.parametrize("clip", [None, 0.5])
def test_float16_leaves_out_the_updates_that_overflow_on_all_stages(
    write_job, train_spec, ended, tmp_path: Path, clip: float | None
) -> None:
    spec = train_spec(0, 4, 7, schedule="1f1b-flush", batch=2, rate=1e-5, samples=192, epochs=2)
    spec = replace(spec, precision="float16")
    spec = replace(spec, optimizer=replace(spec.optimizer, clip_norm=clip))
    codes, found, text = ended(write_job(DIGITS, spec), 2)
    assert set(codes) == {0}, text
    told = losses(found)
    assert told[-1] < told[0]
    if clip is None:
        expected = plain(tmp_path / "mine.py", spec)
        assert expected.skipped >= 2
        assert told == pytest.approx(expected.losses, rel=1e-3)
        saved = load_file(tmp_path / "model.safetensors")
        weights = {name: saved[name] for name in expected.weights if "running" not in name}
        theirs = {name: expected.weights[name] for name in weights}
        assert distance(weights, theirs) < 1e-4
