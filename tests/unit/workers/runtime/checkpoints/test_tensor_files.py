"""Files that are written as a stream are those that the safetensors library reads."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from workers.runtime.checkpoints import tensor_files
from workers.runtime.checkpoints.tensor_files import TensorForm, pieces, write, write_pieces

TENSORS = {
    "a.weight": torch.rand(7, 3),
    "a.count": torch.tensor(4),
    "b.half": torch.rand(5).bfloat16(),
    "b.empty": torch.empty(0, 3),
    "c": torch.arange(11, dtype=torch.uint8),
}


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
def test_pieces_are_the_bytes_of_a_tensor_in_blocks(
    monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(tensor_files, "BLOCK", block)
    for tensor in TENSORS.values():
        found = list(pieces(tensor))
        assert all(0 < piece.nbytes <= block for piece in found)
        whole = torch.cat([torch.empty(0, dtype=torch.uint8), *found])
        assert torch.equal(whole.view(tensor.dtype).reshape(tensor.shape), tensor)


@pytest.mark.parametrize("block", [1, 8, 2**22])
def test_a_file_is_made_of_pieces_that_come_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    """Also under a second name; nothing is asked for before its turn."""
    monkeypatch.setattr(tensor_files, "BLOCK", block)
    given = TENSORS | {"tied": TENSORS["a.weight"]}
    asked = []

    def pieces_of(name: str) -> Iterator[torch.Tensor]:
        asked.append(name)
        for piece in pieces(given[name]):
            assert asked[-1] == name
            yield piece

    forms = {name: TensorForm.of(tensor) for name, tensor in given.items()}
    write_pieces(tmp_path / "all", forms, pieces_of, {})
    assert asked == list(given)
    found = load_file(tmp_path / "all")
    assert found.keys() == given.keys()
    for name, tensor in given.items():
        assert torch.equal(found[name], tensor)
        assert found[name].dtype == tensor.dtype


def test_who_reads_an_earlier_file_is_not_disturbed(tmp_path: Path) -> None:
    write(tmp_path / "all", {"a": torch.zeros(1000)}, {})
    before = load_file(tmp_path / "all")["a"]  # mapped, not read
    write(tmp_path / "all", {"a": torch.ones(10)}, {})
    assert not before.any()
    assert [file.name for file in tmp_path.iterdir()] == ["all"]


def test_the_bytes_begin_where_they_can_be_mapped(tmp_path: Path) -> None:
    for length in range(1, 9):
        write(tmp_path / "all", {"n" * length: torch.rand(3)}, {})
        assert (8 + int.from_bytes((tmp_path / "all").read_bytes()[:8], "little")) % 8 == 0
        with safe_open(tmp_path / "all", framework="pt") as opened:
            assert list(opened.keys()) == ["n" * length]
