"""Text files: as bytes, of which the model learns the next of 256, or by a tokenizer."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from backend.runs.request.data_forms import FORMS
from workers.data.errors import DataFailed
from workers.data.files import parted
from workers.data.ragged import Ragged
from workers.data.request import DataRequest
from workers.data.split import DataSet, Split, TensorSplit, divided, rows_held_out
from workers.data.texts.text_data import TextData


def load(request: DataRequest) -> DataSet:
    """Stretches of `length` bytes, or a line per sample with a length of 0. Stretches are held
    out from the end of the text, so that no stretch lies between two of them."""
    train, held_out = parted(request.path, (".txt", ".md", ".text"), FORMS["text"].path)
    length, name = request.spec.length, str(request.path)
    if request.tokenizer:
        return _tokenized(request, _bytes(train), _bytes(held_out), name)
    if held_out:
        return DataSet(_part(_bytes(train), length), _part(_bytes(held_out), length), name)
    text = _bytes(train)
    if length == 0:
        return divided(_part(text, 0), request.spec.held_out, name)
    cut = round(len(text) * (1 - request.spec.held_out))
    rest = text[cut:]
    kept = _part(rest, length) if len(rest) > length else None
    return DataSet(_part(text[:cut], length), kept, name)


def _tokenized(request: DataRequest, train: bytes, held_out: bytes, name: str) -> DataSet:
    """A line is a text; with packing all lines are one, of which the end is held out."""
    whole, rest = _decoded(train, name), _decoded(held_out, name)
    if request.spec.text.packing:
        if not rest:
            cut = round(len(whole) * (1 - request.spec.held_out))
            whole, rest = whole[:cut], whole[cut:]
        return TextData(request, name).of_texts([whole], [rest] if rest.strip() else [])
    lines = [line for line in whole.splitlines() if line.strip()]
    kept = [line for line in rest.splitlines() if line.strip()]
    if not lines:
        raise DataFailed(f"{name} has no text", "Give a file with lines of text.")
    if not kept:
        numbers = rows_held_out(len(lines), request.spec.held_out)
        lines, kept = ([lines[n] for n in part] for part in numbers)
    return TextData(request, name).of_texts(lines, kept)


def _decoded(text: bytes, name: str) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise DataFailed(f"{name} is not text in UTF-8: {fault}", "Save it in UTF-8.") from None


def _bytes(files: list[Path]) -> bytes:
    try:
        return b"\n".join(file.read_bytes() for file in files)
    except OSError as fault:
        raise DataFailed(f"{fault.filename} cannot be read: {fault.strerror}") from None


def _part(text: bytes, length: int) -> Split:
    return _stretches(text, length) if length else _lines(text)


def _stretches(text: bytes, length: int) -> TensorSplit:
    tokens = _tokens(text)
    count = (len(tokens) - 1) // length
    if count < 1:
        raise DataFailed(
            f"{len(tokens)} bytes of text are fewer than a sample of {length + 1}",
            "Give more text, or a smaller length.",
        )
    inputs = tokens[: count * length].view(count, length)
    return TensorSplit(inputs, tokens[1 : count * length + 1].view(count, length))


def _lines(text: bytes) -> Ragged:
    lines = [_tokens(line) for line in text.splitlines() if len(line) > 1]
    if not lines:
        raise DataFailed("no line of the text has two bytes or more", "Give more text.")
    return Ragged([line[:-1] for line in lines], [line[1:] for line in lines])


def _tokens(text: bytes) -> Tensor:
    return torch.from_numpy(np.frombuffer(text, np.uint8).astype(np.int64))
