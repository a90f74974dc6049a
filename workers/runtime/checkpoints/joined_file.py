"""Joins safetensors files into one by copying bytes, a block at a time.

The format: eight bytes with the length of a JSON header, the header (per name dtype, shape and the
place of its bytes), then the bytes (https://huggingface.co/docs/safetensors).
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

BLOCK = 2**22
_ALIGNMENT = 8

Source = tuple[Path, str]
"""A file and the name of a tensor in it."""


def names_in(file: Path) -> Iterator[str]:
    """The tensors of a safetensors file."""
    return (name for name in _header(file)[0] if name != "__metadata__")


def join(path: Path, sources: Mapping[str, Source]) -> None:
    """Write `path` with these tensors under these names; one source may have several names."""
    headers = {file: _header(file) for file, _ in sources.values()}
    fields, place = {}, 0
    for name, (file, key) in sources.items():
        known = headers[file][0][key]
        first, stop = known["data_offsets"]
        fields[name] = known | {"data_offsets": [place, place + stop - first]}
        place += stop - first
    text = json.dumps(fields).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    with path.open("wb") as target:
        target.write(len(text).to_bytes(8, "little") + text)
        for file, key in sources.values():
            known, start = headers[file]
            first, stop = known[key]["data_offsets"]
            _copy(file, start + first, stop - first, target)


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
