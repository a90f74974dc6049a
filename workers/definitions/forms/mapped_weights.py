"""The weights of a .pt2 program as parts of its file, which are read where they are used."""

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

_ARRANGE = "_build_file_map"
"""torch's function that makes the flat tensors of an archive's records; it reads them all."""


@contextmanager
def weights_mapped(file: Path) -> Iterator[None]:
    """Inside, torch.export.load maps the tensors of `file` into memory in place of reading them.

    The archive is a zip that nothing is compressed in. What is written to such a tensor stays in
    this process. Where torch has changed its insides, the tensors are read as ever.
    """
    from torch.export.pt2_archive import _package  # a second, and only this form needs it

    usual = getattr(_package, _ARRANGE, None)
    if usual is None:
        yield
        return
    with file.open("rb") as opened:
        whole = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_COPY)

    def arrange(archive: Any, config: Any, folder: str) -> dict[str, Tensor]:
        records = {
            each.path_name: each.tensor_meta
            for each in config.config.values()
            if not each.use_pickle
        }
        return {
            name: _mapped(whole, archive.archive_file, folder + name, meta)
            for name, meta in records.items()
        }

    with patch.object(_package, _ARRANGE, arrange):
        yield


def _mapped(whole: mmap.mmap, records: Any, name: str, meta: Any) -> Tensor:
    """One record as a flat tensor; the caller's strides lay it out."""
    from torch._export.serde.serialize import deserialize_scalar_type, deserialize_size

    dtype = deserialize_scalar_type(meta.dtype)
    size = records.get_record_size(name)
    if not size:
        return torch.zeros(deserialize_size(meta.sizes), dtype=dtype)
    flat = torch.frombuffer(
        whole, dtype=dtype, count=size // dtype.itemsize, offset=records.get_record_offset(name)
    )
    return flat.requires_grad_(meta.requires_grad)
