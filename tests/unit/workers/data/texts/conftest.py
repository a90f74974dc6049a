"""Data of texts, loaded as a rank does."""

import json
from pathlib import Path

import pytest

from backend.runs.request.spec import DataSpec
from backend.runs.request.text_spec import TextSpec
from tests.words import byte_tokenizer
from workers.data.catalog import load
from workers.data.split import DataSet
from workers.definitions.loader import load as load_definition

MODEL = """
import torch
from torch import nn

def model(): return nn.Sequential(nn.Embedding({known}, 4), nn.Linear(4, {known}))
def example(n): return {example}
"""
TOKENS = "torch.zeros(n, 8, dtype=torch.long), torch.zeros(n, 8, dtype=torch.long)"


@pytest.fixture
def vocabulary(tmp_path: Path):
    """A byte-level tokenizer in the folder `words`."""
    return byte_tokenizer(tmp_path / "words", ("<|im_start|>", "<|im_end|>"))


@pytest.fixture
def loaded(tmp_path: Path, vocabulary):
    """The data set of these JSON lines, for a model whose example is as written."""

    def made(lines: list, example: str = TOKENS, known: int = 400, **more) -> DataSet:
        (tmp_path / "model.py").write_text(MODEL.format(known=known, example=example))
        file = tmp_path / more.pop("file", "lines.jsonl")
        told = [each if isinstance(each, str) else json.dumps(each) for each in lines]
        file.write_text("\n".join(told))
        chosen = {name: more.pop(name) for name in ("inputs", "targets", "buckets") if name in more}
        length, form = more.pop("length", 8), more.pop("form", "jsonl")
        tokenizer = str(tmp_path / more.pop("words", "words"))
        spec = DataSpec(
            form,
            path=str(file),
            held_out=more.pop("held_out", 0.0),
            length=length,
            **chosen,
            text=TextSpec(tokenizer, **more),
        )
        definition = load_definition(tmp_path / "model.py")
        return load(spec, definition, str(file), tokenizer)

    return made
