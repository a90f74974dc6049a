"""Files that are written as a stream are those that the safetensors library reads."""

from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from workers.runtime.checkpoints import tensor_files
from workers.runtime.checkpoints.tensor_files import join, names_in, write

TENSORS = {
    "a.weight": torch.rand(7, 3),
    "a.count": torch.tensor(4),
    "b.half": torch.rand(5).bfloat16(),
    "b.empty": torch.empty(0, 3),
    "c": torch.arange(11, dtype=torch.uint8),
}


@pytest.fixture
def parts(tmp_path: Path) -> list[Path]:
    """Two files that have every tensor between them."""
    files = [tmp_path / "one.safetensors", tmp_path / "two.safetensors"]
    names = sorted(TENSORS)
    save_file({name: TENSORS[name] for name in names[::2]}, files[0], {"lane": "0"})
    save_file({name: TENSORS[name] for name in names[1::2]}, files[1])
    return files


def test_what_is_written_is_what_the_library_reads(tmp_path: Path) -> None:
    given = TENSORS | {"turned": torch.rand(4, 6).t(), "trained": torch.rand(3, requires_grad=True)}
    write(tmp_path / "all", given, {"lane": "2"})
    found = load_file(tmp_path / "all")
    assert found.keys() == given.keys()
    for name, tensor in given.items():
        assert torch.equal(found[name], tensor)
        assert found[name].dtype == tensor.dtype
    with safe_open(tmp_path / "all", framework="pt") as opened:
        assert opened.metadata() == {"lane": "2"}


@pytest.mark.parametrize("block", [1, 8, 2**22])
def test_every_tensor_is_there_under_each_of_its_names(
    parts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(tensor_files, "BLOCK", block)
    sources = {name: (file, name) for file in parts for name in names_in(file)}
    assert sources.keys() == TENSORS.keys()
    join(tmp_path / "all", sources | {"tied": sources["a.weight"]})
    found = load_file(tmp_path / "all")
    assert found.keys() == TENSORS.keys() | {"tied"}
    for name, tensor in (TENSORS | {"tied": TENSORS["a.weight"]}).items():
        assert torch.equal(found[name], tensor)
        assert found[name].dtype == tensor.dtype


def test_the_bytes_begin_where_they_can_be_mapped(parts: list[Path], tmp_path: Path) -> None:
    join(tmp_path / "all", {"renamed": (parts[0], next(names_in(parts[0])))})
    assert (8 + int.from_bytes((tmp_path / "all").read_bytes()[:8], "little")) % 8 == 0
    with safe_open(tmp_path / "all", framework="pt") as opened:
        assert list(opened.keys()) == ["renamed"]
