"""Files of safetensors written as a stream: no tensor is copied before it is its turn.

The library takes all bytes of a file at once, which is twice the state of a stage. The format:
eight bytes with the length of a JSON header, the header (per name dtype, shape and the place of
its bytes), then the bytes (https://huggingface.co/docs/safetensors).
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

BLOCK = 2**22
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

Source = tuple[Path, str]
"""A file and the name of a tensor in it."""


def write(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write the tensors, wherever they are, one after the other."""
    described = {
        name: (_DTYPES[tensor.dtype], tuple(tensor.shape), tensor.nbytes)
        for name, tensor in tensors.items()
    }
    with path.open("wb") as target:
        _begin(target, described, metadata)
        for tensor in tensors.values():
            plain = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
            target.write(plain.numpy().data)


def names_in(file: Path) -> Iterator[str]:
    """The tensors of a file."""
    return (name for name in _header(file)[0] if name != "__metadata__")


def join(path: Path, sources: Mapping[str, Source]) -> None:
    """Write `path` with these tensors under these names; one source may have several names."""
    headers = {file: _header(file) for file, _ in sources.values()}
    described = {}
    for name, (file, key) in sources.items():
        known = headers[file][0][key]
        first, stop = known["data_offsets"]
        described[name] = known["dtype"], tuple(known["shape"]), stop - first
    with path.open("wb") as target:
        _begin(target, described, {})
        for file, key in sources.values():
            known, start = headers[file]
            first, stop = known[key]["data_offsets"]
            _copy(file, start + first, stop - first, target)


def _begin(
    target: BinaryIO,
    described: Mapping[str, tuple[str, tuple[int, ...], int]],
    metadata: Mapping[str, str],
) -> None:
    """Write the header of tensors with this dtype, shape and number of bytes."""
    fields: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    place = 0
    for name, (dtype, shape, size) in described.items():
        fields[name] = {"dtype": dtype, "shape": shape, "data_offsets": [place, place + size]}
        place += size
    text = json.dumps(fields).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    target.write(len(text).to_bytes(8, "little") + text)


def _header(file: Path) -> tuple[dict[str, Any], int]:
    """The header, and where the bytes behind it begin."""
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        return json.loads(opened.read(length)), 8 + length


def _copy(file: Path, start: int, length: int, target: BinaryIO) -> None:
    with file.open("rb") as source:
        source.seek(start)
        while length:
            block = source.read(min(length, BLOCK))
            target.write(block)
            length -= len(block)
