"""The same forty samples, kept in every form of data that takes a file."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from PIL import Image

NUM_SAMPLES, NUM_CLASSES, SIDE = 40, 4, 2
LABELS = [number % NUM_CLASSES for number in range(NUM_SAMPLES)]
PIXELS = np.stack([np.full((SIDE, SIDE), 5 * number, np.uint8) for number in range(NUM_SAMPLES)])
"""A grey of its own for each sample."""
Make = Callable[[Path], Path]


def numpy(folder: Path) -> Path:
    file = folder / "mine.npz"
    np.savez(file, x=PIXELS[:, None], y=np.array(LABELS))
    return file


def _table() -> pa.Table:
    columns = {f"p{n}": PIXELS.reshape(NUM_SAMPLES, -1)[:, n] / 255 for n in range(SIDE * SIDE)}
    return pa.table(columns | {"label": LABELS})


def parquet(folder: Path) -> Path:
    pyarrow.parquet.write_table(_table(), folder / "mine.parquet")
    return folder / "mine.parquet"


def csv(folder: Path) -> Path:
    pyarrow.csv.write_csv(_table(), folder / "mine.csv")
    return folder / "mine.csv"


def jsonl(folder: Path) -> Path:
    lines = [json.dumps(row) for row in _table().to_pylist()]
    (folder / "mine.jsonl").write_text("\n".join(lines))
    return folder / "mine.jsonl"


def images(folder: Path) -> Path:
    for number, (pixels, label) in enumerate(zip(PIXELS, LABELS, strict=True)):
        file = folder / "pictures" / f"class{label}" / f"{number:02}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(file)
    return folder / "pictures"


def huggingface(folder: Path) -> Path:
    import datasets

    rows = {"pixels": [row.reshape(-1).tolist() for row in PIXELS / 255], "label": LABELS}
    datasets.Dataset.from_dict(rows).save_to_disk(folder / "saved")
    return folder / "saved"


PYTHON = f"""
import torch

class Dataset:
    def __len__(self):
        return {NUM_SAMPLES}

    def __getitem__(self, n):
        return torch.full((1, {SIDE}, {SIDE}), 5 * n / 255), n % {NUM_CLASSES}
"""


def python(folder: Path) -> Path:
    (folder / "mine.py").write_text(PYTHON)
    return folder / "mine.py"


def text(folder: Path) -> Path:
    """Other samples: forty stretches of eight bytes."""
    (folder / "mine.txt").write_bytes(bytes(range(32, 112)) * 5)
    return folder / "mine.txt"


MAKERS: dict[str, Make] = {
    "numpy": numpy,
    "parquet": parquet,
    "csv": csv,
    "jsonl": jsonl,
    "images": images,
    "huggingface": huggingface,
    "python": python,
    "text": text,
}
PICTURES = [name for name in MAKERS if name != "text"]
MODEL = f"""
import torch
from torch import nn

def model(): return nn.Sequential(nn.Flatten(), nn.Linear({SIDE * SIDE}, {NUM_CLASSES}))
def example(n): return torch.rand(n, 1, {SIDE}, {SIDE}), torch.randint({NUM_CLASSES}, (n,))
"""
TOKENS = """
import torch
from torch import nn

def model(): return nn.Sequential(nn.Embedding(256, 4), nn.Linear(4, 256))
def example(n): return torch.randint(256, (n, 8)), torch.randint(256, (n, 8))
"""
