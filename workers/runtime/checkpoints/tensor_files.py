"""Files of safetensors written as a stream: a few MiB of a tensor are copied when it is their turn.

The library takes all bytes of a file at once, which is twice the state of a stage. The format:
eight bytes with the length of a JSON header, the header (per name dtype, shape and the place of
its bytes), then the bytes (https://huggingface.co/docs/safetensors).
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

BLOCK = 2**22
"""Bytes of a piece."""
_ALIGNMENT = 8
_DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
    torch.complex64: "C64",
}


@dataclass(frozen=True, slots=True)
class TensorForm:
    """What a file's header says of a tensor; `dtype` in the format's words, `size` in bytes."""

    dtype: str
    shape: tuple[int, ...]
    size: int

    @staticmethod
    def of(tensor: Tensor) -> "TensorForm":
        return TensorForm(_DTYPES[tensor.dtype], tuple(tensor.shape), tensor.nbytes)


def write(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write the tensors, wherever they are, one after the other."""
    forms = {name: TensorForm.of(tensor) for name, tensor in tensors.items()}
    write_pieces(path, forms, lambda name: pieces(tensors[name]), metadata)


def write_pieces(
    path: Path,
    forms: Mapping[str, TensorForm],
    pieces_of: Callable[[str], Iterable[Tensor]],
    metadata: Mapping[str, str],
) -> None:
    """Write tensors of these forms; `pieces_of` a name is asked in their order, when it is the
    tensor's turn, and gives its bytes. A file that has its name is whole, and stays what it was for
    whoever has mapped an earlier one."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    with unfinished.open("wb") as target:
        _begin(target, forms, metadata)
        for name in forms:
            for piece in pieces_of(name):
                target.write(piece.cpu().numpy().data)
    os.replace(unfinished, path)


def pieces(tensor: Tensor) -> Iterator[Tensor]:
    """The tensor's bytes where they are, at most `BLOCK` at a time."""
    plain = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
    for first in range(0, len(plain), BLOCK):
        yield plain[first : first + BLOCK]


def _begin(target: BinaryIO, forms: Mapping[str, TensorForm], metadata: Mapping[str, str]) -> None:
    """Write the header."""
    fields: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    place = 0
    for name, form in forms.items():
        stop = place + form.size
        fields[name] = {"dtype": form.dtype, "shape": form.shape, "data_offsets": [place, stop]}
        place = stop
    text = json.dumps(fields).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    target.write(len(text).to_bytes(8, "little") + text)
