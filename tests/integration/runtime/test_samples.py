"""Texts by a tokenizer, augmented pictures and categories in two stages, beside one process.

Each rank draws for itself what it needs: were the first one's inputs not those that the last one's
targets belong to, the losses would be others than those of one process.
"""

import json
from pathlib import Path

import pytest
from safetensors.torch import load_file

from backend.runs.events import Metrics
from backend.runs.request.sample_specs import PictureSpec, TableSpec
from backend.runs.request.spec import DataSpec
from backend.runs.request.text_spec import TextSpec
from tests.integration.runtime.plain import distance, plain
from tests.words import TEXTS, byte_tokenizer, word_tokenizer

pytestmark = pytest.mark.slow
WORDS = """
class Seen(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(300, 8), nn.Embedding(16, 8)
        self.block = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
        self.out = nn.Linear(8, 300)

    def forward(self, input_ids, attention_mask, position_ids):
        x = self.words(input_ids) + self.places(position_ids)
        mask = attention_mask.repeat_interleave(2, 0)
        return self.out(self.block(x, src_mask=mask))

def model(): return Seen()
def example(n):
    tokens = torch.zeros(n, 16, dtype=torch.long)
    given = {"input_ids": tokens, "attention_mask": torch.zeros(n, 16, 16)}
    return given | {"position_ids": tokens}, tokens
"""
PICTURES = """
DATA = "digits"
def model():
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 10))
def example(n): return torch.rand(n, 1, 8, 8), torch.randint(10, (n,))
"""
TABLE = """
class Kinds(nn.Module):
    def __init__(self):
        super().__init__()
        self.kinds, self.hidden, self.out = nn.Embedding(4, 3), nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, sizes, kinds):
        return self.out(torch.relu(self.hidden(torch.cat((sizes, self.kinds(kinds[:, 0])), 1))))

def model(): return Kinds()
def example(n):
    return (torch.rand(n, 1), torch.zeros(n, 1, dtype=torch.long)), torch.zeros(n, dtype=torch.long)
"""


def texts(folder: Path, task: str) -> tuple[str, DataSpec]:
    make = byte_tokenizer if task == "causal" else word_tokenizer
    make(folder / "words")
    lines = [json.dumps({"text": f"{text} {n}"}) for n in range(8) for text in TEXTS]
    (folder / "lines.jsonl").write_text("\n".join(lines))
    spec = TextSpec("words", "causal" if task == "causal" else "masked", packing=True)
    return WORDS, DataSpec("jsonl", path="lines.jsonl", length=16, text=spec)


def pictures(folder: Path) -> tuple[str, DataSpec]:
    spec = PictureSpec(1, True, 0.2, 0.5, (0.3,), (0.4,))
    return PICTURES, DataSpec("digits", pictures=spec)


def table(folder: Path) -> tuple[str, DataSpec]:
    rows = [
        f"{'red green blue'.split()[n % 3]},{n / 9 if n % 5 else ''},{n % 2}" for n in range(90)
    ]
    (folder / "rows.csv").write_text("\n".join(["colour,size,kind", *rows]))
    return TABLE, DataSpec("csv", path="rows.csv", table=TableSpec(True, True))


CASES = {
    "causal": lambda folder: texts(folder, "causal"),
    "masked": lambda folder: texts(folder, "masked"),
    "pictures": pictures,
    "table": table,
}


@pytest.mark.parametrize("name", CASES)
def test_two_stages_learn_what_one_process_learns(
    write_job, train_spec, ended, tmp_path: Path, name: str
) -> None:
    model, data = CASES[name](tmp_path)
    last = {"causal": 6, "masked": 6, "pictures": 4, "table": 6}[name]
    spec = train_spec(0, 2, last, schedule="1f1b-flush", microbatch=8, batch=2, epochs=2, data=data)
    place = str(tmp_path / data.path) if data.path else ""
    tokenizer = str(tmp_path / "words") if data.text.tokenizer else ""
    codes, found, text = ended(write_job(model, spec, place, tokenizer), 2)
    assert set(codes) == {0}, text
    expected = plain(tmp_path / "mine.py", spec, place, tokenizer=tokenizer)
    told = [v for e in found if isinstance(e, Metrics) and e.name == "loss" for v in e.values]
    assert told == pytest.approx(expected.losses, rel=1e-5)
    assert distance(load_file(tmp_path / "model.safetensors"), expected.weights) < 1e-5
    if tokenizer:
        beside = (tmp_path / "tokenizer.json").read_text()
        assert beside == (tmp_path / "words" / "tokenizer.json").read_text()
    if name == "table":
        assert "colour: 4 categories" in text
