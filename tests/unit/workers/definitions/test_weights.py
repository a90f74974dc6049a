"""First weights from files and folders of shards: what is taken, and what is refused by name."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from tests.shards import sharded
from workers.definitions.errors import DefinitionFailed
from workers.definitions.weight_files import INDEX
from workers.definitions.weights import FirstWeights


class Body(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = nn.Linear(3, 4), nn.BatchNorm1d(4)


class WithHead(nn.Module):
    def __init__(self, classes: int = 5) -> None:
        super().__init__()
        self.body, self.head = Body(), nn.Linear(4, classes, bias=False)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.head = nn.Embedding(5, 4), nn.Linear(4, 5, bias=False)
        self.head.weight = self.inner.weight


def state(model: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def differing(model: nn.Module, tensors: dict[str, Tensor]) -> list[str]:
    found = model.state_dict()
    return [name for name in found if not torch.equal(found[name], tensors[name])]


def test_shards_are_read_by_their_index(tmp_path: Path) -> None:
    given, model = state(WithHead()), WithHead()
    assert differing(model, given)
    assert FirstWeights(sharded(tmp_path / "base", given)).load(model) == ()
    assert not differing(model, given)


@pytest.mark.parametrize("name", ["model.safetensors", "adapter.safetensors"])
def test_a_folder_of_one_file_needs_no_index(tmp_path: Path, name: str) -> None:
    given, model = state(Body()), Body()
    save_file(given, tmp_path / name)
    FirstWeights(tmp_path).load(model)
    assert not differing(model, given)


def test_a_tied_weight_stands_under_any_of_its_names(tmp_path: Path) -> None:
    for name in ("inner.weight", "head.weight"):
        model, given = Tied(), torch.rand(5, 4)
        save_file({name: given}, tmp_path / "w.safetensors")
        FirstWeights(tmp_path / "w.safetensors").load(model)
        assert torch.equal(model.inner.weight, given)
        assert model.inner.weight is model.head.weight


def test_numbers_are_put_into_the_model_s_own_type(tmp_path: Path) -> None:
    given, model = {n: t.half() for n, t in state(WithHead()).items()}, WithHead()
    save_file(given, tmp_path / "w.safetensors")
    FirstWeights(tmp_path / "w.safetensors").load(model)
    assert model.head.weight.dtype is torch.float32
    assert torch.equal(model.head.weight, given["head.weight"].float())


def test_only_the_tensors_that_have_values_are_read(tmp_path: Path) -> None:
    with FakeTensorMode():
        model = WithHead()
    model.head = nn.Linear(4, 5, bias=False)
    given = state(WithHead())
    FirstWeights(sharded(tmp_path / "base", given)).load(model)
    assert torch.equal(model.head.weight, given["head.weight"])
    assert isinstance(model.body.first.weight.data, FakeTensor)


class TestABaseUnderANewHead:
    def test_is_refused_where_nobody_allowed_it(self, tmp_path: Path) -> None:
        save_file(state(Body()), tmp_path / "base.safetensors")
        with pytest.raises(DefinitionFailed, match=r"base.safetensors lacks head.weight") as raised:
            FirstWeights(tmp_path / "base.safetensors").load(WithHead())
        assert "allow partial" in raised.value.advice

    def test_is_taken_where_it_is(self, tmp_path: Path) -> None:
        base, model = state(Body()), WithHead()
        save_file(base, tmp_path / "base.safetensors")
        head = model.head.weight.clone()
        notes = FirstWeights(tmp_path / "base.safetensors", partial=True).load(model)
        assert not differing(model.body, base)
        assert torch.equal(model.head.weight, head)
        assert notes == (
            "the names in the weights are those of the model's part body",
            "base.safetensors lacks head.weight: what is not taken from it begins as the model "
            "makes it",
        )

    def test_the_other_way_round_the_part_is_taken(self, tmp_path: Path) -> None:
        whole, model = state(WithHead()), Body()
        save_file(whole, tmp_path / "whole.safetensors")
        notes = FirstWeights(tmp_path / "whole.safetensors", partial=True).load(model)
        assert not differing(model, {n[5:]: t for n, t in whole.items() if n.startswith("body.")})
        assert notes[0] == "the weights are of a larger model, whose part body is taken"

    def test_a_head_of_another_size_is_kept(self, tmp_path: Path) -> None:
        given, model = state(WithHead(7)), WithHead()
        save_file(given, tmp_path / "w.safetensors")
        head = model.head.weight.clone()
        (note,) = FirstWeights(tmp_path / "w.safetensors", partial=True).load(model)
        assert torch.equal(model.head.weight, head)
        assert not differing(model.body, {n[5:]: t for n, t in given.items() if n[:4] == "body"})
        assert "head.weight (7 x 4 for 5 x 4)" in note

    def test_nothing_at_all_is_no_part(self, tmp_path: Path) -> None:
        save_file({"other": torch.zeros(2)}, tmp_path / "w.safetensors")
        with pytest.raises(DefinitionFailed, match=r"none of the model's tensors; it has other"):
            FirstWeights(tmp_path / "w.safetensors", partial=True).load(Body())


class TestRefusals:
    def said(self, path: Path, model: nn.Module | None = None) -> str:
        with pytest.raises(DefinitionFailed) as raised:
            FirstWeights(path).check(model or WithHead())
        assert raised.value.advice
        return str(raised.value)

    def test_a_missing_shard(self, tmp_path: Path) -> None:
        folder = sharded(tmp_path / "base", state(WithHead()))
        (folder / "model-00002-of-00002.safetensors").unlink()
        assert self.said(folder) == (
            f"{INDEX} names 2 files, and model-00002-of-00002.safetensors is not in the folder base"
        )

    def test_a_wrong_shape(self, tmp_path: Path) -> None:
        folder = sharded(tmp_path / "base", state(WithHead(9)))
        assert self.said(folder) == "base has other sizes of head.weight (9 x 4 for 5 x 4)"

    def test_a_truncated_file(self, tmp_path: Path) -> None:
        folder = sharded(tmp_path / "base", state(WithHead()))
        shard = folder / "model-00001-of-00002.safetensors"
        shard.write_bytes(shard.read_bytes()[:-10])
        assert self.said(folder).startswith(f"{shard.name} cannot be read as safetensors: ")

    def test_an_index_of_another_version(self, tmp_path: Path) -> None:
        folder = sharded(tmp_path / "base", state(WithHead()))
        told = json.loads((folder / INDEX).read_text())
        told["weight_map"]["head.weight"] = "model-00001-of-00002.safetensors"
        (folder / INDEX).write_text(json.dumps(told))
        assert "head.weight is in model-00001-of-00002.safetensors, which has no" in self.said(
            folder
        )

    @pytest.mark.parametrize("text", ["{", "[]", '{"weight_map": 3}', "{}"])
    def test_no_index(self, tmp_path: Path, text: str) -> None:
        (tmp_path / INDEX).write_text(text)
        assert self.said(tmp_path).startswith(f"{INDEX} is not an index of shards")

    def test_an_index_that_leads_out_of_its_folder(self, tmp_path: Path) -> None:
        save_file(state(WithHead()), tmp_path / "secret.safetensors")
        (tmp_path / "base").mkdir()
        places = dict.fromkeys(WithHead().state_dict(), "../secret.safetensors")
        (tmp_path / "base" / INDEX).write_text(json.dumps({"weight_map": places}))
        assert "../secret.safetensors is not in the folder base" in self.said(tmp_path / "base")

    def test_several_files_without_an_index(self, tmp_path: Path) -> None:
        for name in ("a", "b"):
            save_file({name: torch.zeros(1)}, tmp_path / f"{name}.safetensors")
        assert f"has a.safetensors, b.safetensors and no {INDEX}" in self.said(tmp_path)

    def test_an_empty_folder_and_pickles(self, tmp_path: Path) -> None:
        (tmp_path / "pytorch_model.bin").write_bytes(b"PK")
        assert self.said(tmp_path).endswith("has no safetensors files")

    def test_what_is_no_safetensors_file(self, tmp_path: Path) -> None:
        (tmp_path / "w.safetensors").write_bytes(b"hello")
        assert "cannot be read as safetensors" in self.said(tmp_path / "w.safetensors")
